//! Our own crates, as their manifests have them.

use std::fs;
use std::path::PathBuf;

use toml::{Table, Value};

use crate::files::{files, root};

/// One of our crates.
pub struct Crate {
    /// Its folder's name.
    pub folder: String,
    /// Where its folder is.
    pub layer: Layer,
    /// Its manifest.
    pub manifest: Table,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// Where a crate is: what it may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Speaks to machines and knows no service.
    Drivers,
    /// What an operator runs, and what it is made of.
    Services,
    /// What tries the others.
    Tests,
}

/// A dependency of one of our crates.
pub struct Dependency {
    /// Its name in the manifest.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Whether its version and features are the root manifest's.
    pub from_root: bool,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The crate itself, or the making of it.
    Normal,
    /// The crate's tests.
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
    /// Its folder, from the root on.
    pub fn path(&self) -> String {
        format!("{}/{}", self.layer.as_str(), self.folder)
    }

    /// A file of it.
    pub fn file(&self, name: &str) -> PathBuf {
        root().join(self.path()).join(name)
    }

    /// Whether it pretends to be somebody else's machine or service.
    pub fn is_emulator(&self) -> bool {
        self.folder.ends_with("-emulator")
    }

    /// All its Rust, as one text.
    pub fn source(&self) -> String {
        let folder = self.path() + "/";
        let own = files().into_iter().filter(|file| file.starts_with(&folder));
        let rust = own.filter(|file| file.ends_with(".rs"));
        rust.filter_map(|file| fs::read_to_string(root().join(file)).ok()).collect()
    }
}

/// All our crates: each folder of a layer that has a manifest.
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
