//! What lies where.

use std::collections::BTreeSet;

use tidy::{crates, files, none};
use toml::Value;

/// What may lie at the top, files that begin with a dot aside.
const TOP: [&str; 11] = [
    "ARCHITECTURE.md",
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
fn the_top_holds_what_it_may_and_no_more() {
    let files = files();
    let top: BTreeSet<&str> = files.iter().filter_map(|file| file.split('/').next()).collect();
    let expected = |name: &str| TOP.contains(&name) || name.starts_with('.');
    none(
        "not expected at the top",
        top.iter().filter(|name| !expected(name)).map(|name| (*name).to_owned()),
    );
    none(
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
    none("crates named otherwise than their folders", wrong.map(|one| one.path()));
}

#[test]
fn no_crate_lies_in_a_crate() {
    let manifests = files().into_iter().filter(|file| file.ends_with("/Cargo.toml"));
    let wrong = manifests.filter(|file| {
        let layered =
            ["drivers/", "services/", "tests/"].iter().any(|layer| file.starts_with(layer));
        !layered || file.split('/').count() != 3
    });
    none("crates elsewhere than in a layer's folder", wrong);
}
