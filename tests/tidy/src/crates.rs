//! The crates of this repository, as their manifests describe them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use toml::{Table, Value};

use crate::files::{files, root};

/// A crate of this repository.
pub struct Crate {
    pub folder: String,
    /// The top folder that contains the crate.
    pub layer: Layer,
    pub manifest: Table,
    pub dependencies: Vec<Dependency>,
}

/// The layer of a crate, which decides which crates it may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Protocol drivers, which know no service.
    Drivers,
    /// The services that operators run, and their parts.
    Services,
    /// Tests, emulators and tools for tests.
    Tests,
}

/// A dependency of a crate.
pub struct Dependency {
    /// The name in the manifest.
    pub name: String,
    pub kind: Kind,
    /// Whether version and features come from the root manifest.
    pub from_root: bool,
}

/// The kind of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the crate itself or its build script.
    Normal,
    /// For the tests of the crate.
    Dev,
}

impl Layer {
    const ALL: [Layer; 3] = [Layer::Drivers, Layer::Services, Layer::Tests];

    /// The folder of this layer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Layer::Drivers => "drivers",
            Layer::Services => "services",
            Layer::Tests => "tests",
        }
    }
}

impl Crate {
    /// The folder of the crate, relative to the root.
    pub fn path(&self) -> String {
        format!("{}/{}", self.layer.as_str(), self.folder)
    }

    /// The path of a file in the crate.
    pub fn file(&self, name: &str) -> PathBuf {
        root().join(self.path()).join(name)
    }

    /// Whether the crate emulates a foreign machine or service.
    pub fn is_emulator(&self) -> bool {
        self.folder.ends_with("-emulator")
    }

    /// The Rust files in `src/`, by their path below it.
    pub fn sources(&self) -> BTreeMap<String, String> {
        let folder = self.path() + "/src/";
        let read = |file: String| {
            let text = fs::read_to_string(root().join(&file)).ok()?;
            Some((file.strip_prefix(&folder)?.to_owned(), text))
        };
        let rust = files().into_iter().filter(|file| file.ends_with(".rs"));
        rust.filter(|file| file.starts_with(&folder)).filter_map(read).collect()
    }

    /// All Rust files of the crate, as one text.
    pub fn source(&self) -> String {
        let folder = self.path() + "/";
        let own = files().into_iter().filter(|file| file.starts_with(&folder));
        let rust = own.filter(|file| file.ends_with(".rs"));
        rust.filter_map(|file| fs::read_to_string(root().join(file)).ok()).collect()
    }
}

/// All crates of this repository: each folder of a layer that has a manifest.
pub fn crates() -> Vec<Crate> {
    let manifests = files().into_iter().filter_map(|file| {
        let mut parts = file.split('/');
        let layer = parts.next()?;
        let layer = Layer::ALL.into_iter().find(|known| known.as_str() == layer)?;
        let folder = parts.next()?.to_owned();
        (parts.next() == Some("Cargo.toml")).then_some((layer, folder, file))
    });
    let crates: Vec<Crate> =
        manifests.map(|(layer, folder, file)| read(layer, folder, &file)).collect();
    assert!(!crates.is_empty(), "no crate was found");
    crates
}

fn read(layer: Layer, folder: String, file: &str) -> Crate {
    let text = fs::read_to_string(root().join(file)).expect("a listed file can be read");
    let manifest: Table = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = platforms.filter_map(|(_, table)| table.as_table());
    let dependencies = tables.chain([&manifest]).flat_map(dependencies).collect();
    Crate { folder, layer, manifest, dependencies }
}

fn dependencies(table: &Table) -> Vec<Dependency> {
    let kinds = [
        ("dependencies", Kind::Normal),
        ("build-dependencies", Kind::Normal),
        ("dev-dependencies", Kind::Dev),
    ];
    let of = |(key, kind): (&str, Kind)| {
        let entries = table.get(key).and_then(Value::as_table).into_iter().flatten();
        let entries = entries.map(move |(name, value)| Dependency {
            name: name.clone(),
            kind,
            from_root: value.get("workspace").and_then(Value::as_bool) == Some(true),
        });
        entries.collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of).collect()
}
