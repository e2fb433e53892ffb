//! Checks the manifests: shared settings come from the root, and each dependency is declared once and used.

use std::collections::BTreeSet;

use tidy::{Crate, assert_none, crates, root};
use toml::{Table, Value};

/// Dependencies that appear in no source line, because macros use them.
const NAMED_BY_MACROS: [(&str, &str); 2] =
    [("baremetal-core", "newtype-uuid"), ("cluster-core", "newtype-uuid")];

/// The crate that defines functions of libc, which only unsafe code can do. Its manifest repeats the other lints.
const UNSAFE: &str = "simulated-kernel";

fn root_manifest() -> Table {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("the root has a manifest");
    text.parse().expect("a manifest is TOML")
}

fn at<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

/// The dependencies that the root manifest declares.
fn chosen() -> BTreeSet<String> {
    let manifest = root_manifest();
    let entries = at(&manifest, &["workspace", "dependencies"]).and_then(Value::as_table);
    entries.expect("the root manifest chooses dependencies").keys().cloned().collect()
}

#[test]
fn no_own_crate_is_published() {
    let manifest = root_manifest();
    let package = |key| at(&manifest, &["workspace", "package", key]);
    assert_eq!(package("publish").and_then(Value::as_bool), Some(false));
    assert_eq!(package("license").and_then(Value::as_str), Some("Apache-2.0"));
}

#[test]
fn every_crate_inherits_common_settings_from_the_root() {
    let same: [&[&str]; 5] = [
        &["package", "version", "workspace"],
        &["package", "edition", "workspace"],
        &["package", "license", "workspace"],
        &["package", "publish", "workspace"],
        &["lints", "workspace"],
    ];
    let crates = crates();
    let wrong = crates.iter().flat_map(|one| {
        let own = |path: &&&[&str]| at(&one.manifest, path) != Some(&Value::Boolean(true));
        let is_exempt = |path: &&&[&str]| one.folder == UNSAFE && path[0] == "lints";
        let own = same.iter().filter(own).filter(move |path| !is_exempt(path));
        own.map(|path| format!("{}/Cargo.toml lacks {} = true", one.path(), path.join(".")))
    });
    assert_none("manifests that go their own way", wrong);
}

#[test]
fn every_dependency_is_declared_in_the_root() {
    let chosen = chosen();
    let crates = crates();
    let wrong = crates.iter().flat_map(|one| {
        let own = one.dependencies.iter().filter(|it| !it.from_root || !chosen.contains(&it.name));
        own.map(|it| format!("{}/Cargo.toml chooses {} for itself", one.path(), it.name))
    });
    assert_none("dependencies that the root manifest does not know", wrong);
}

#[test]
fn every_dependency_of_the_root_is_used() {
    let crates = crates();
    let used: BTreeSet<&str> =
        crates.iter().flat_map(|one| &one.dependencies).map(|it| it.name.as_str()).collect();
    let wrong = chosen().into_iter().filter(|name| !used.contains(name.as_str()));
    assert_none("entries of [workspace.dependencies] that no crate uses", wrong);
}

#[test]
fn every_crate_uses_its_dependencies() {
    let crates = crates();
    assert_none("dependencies that their crate never names", crates.iter().flat_map(unused));
}

fn unused(one: &Crate) -> Vec<String> {
    let source = one.source();
    let words: BTreeSet<&str> = source.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let named = |name: &str| {
        let word = name.replace('-', "_");
        words.contains(word.as_str()) || NAMED_BY_MACROS.contains(&(one.folder.as_str(), name))
    };
    let unused = one.dependencies.iter().filter(|it| !named(&it.name));
    unused.map(|it| format!("{}: {}", one.path(), it.name)).collect()
}
