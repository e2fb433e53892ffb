//! Checks the layout of the repository.

use std::collections::BTreeSet;

use tidy::{assert_none, crates, files};
use toml::Value;

/// The files and folders allowed at the top, apart from dot files.
const TOP: [&str; 13] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "deploy",
    "drivers",
    "images",
    "services",
    "tests",
];

#[test]
fn the_top_folder_contains_only_allowed_files() {
    let files = files();
    let top: BTreeSet<&str> = files.iter().filter_map(|file| file.split('/').next()).collect();
    let expected = |name: &str| TOP.contains(&name) || name.starts_with('.');
    assert_none(
        "not expected at the top",
        top.iter().filter(|name| !expected(name)).map(|name| (*name).to_owned()),
    );
    assert_none(
        "missing at the top",
        TOP.iter().filter(|name| !top.contains(**name)).map(|name| (*name).to_owned()),
    );
}

#[test]
fn a_crate_is_named_as_its_folder() {
    let name = |manifest: &toml::Table| {
        Some(manifest.get("package")?.get("name").and_then(Value::as_str)?.to_owned())
    };
    let wrong = crates().into_iter().filter(|one| name(&one.manifest) != Some(one.folder.clone()));
    assert_none("crates named otherwise than their folders", wrong.map(|one| one.path()));
}

#[test]
fn no_crate_contains_another_crate() {
    let manifests = files().into_iter().filter(|file| file.ends_with("/Cargo.toml"));
    let wrong = manifests.filter(|file| {
        let layered =
            ["drivers/", "services/", "tests/"].iter().any(|layer| file.starts_with(layer));
        !layered || file.split('/').count() != 3
    });
    assert_none("crates elsewhere than in a layer's folder", wrong);
}
