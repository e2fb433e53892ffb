//! Checks the imports inside each crate: a crate reads from its front door down, and no module leads back.

use std::collections::BTreeMap;

use tidy::{Crate, assert_none, circles, crates};

/// Crates whose modules still import from each other, with the number of modules in circles. The numbers only fall.
const TIED: [(&str, usize); 1] = [("tests/openstack-emulator", 81)];

#[test]
fn modules_import_downwards_only() {
    let crates = crates();
    let wrong = crates.iter().filter_map(|one| {
        let found = circles(&one.sources());
        let known = TIED.iter().find(|(path, _)| *path == one.path());
        objection(one, &found, known.map_or(0, |(_, known)| *known))
    });
    assert_none("modules that import from each other", wrong);
}

#[test]
fn every_tied_crate_exists() {
    let crates: Vec<String> = crates().iter().map(Crate::path).collect();
    let wrong = TIED.iter().filter(|(path, _)| !crates.iter().any(|one| one == path));
    assert_none("crates in the table that do not exist", wrong.map(|(path, _)| (*path).to_owned()));
}

fn objection(one: &Crate, found: &BTreeMap<String, Vec<String>>, known: usize) -> Option<String> {
    let path = one.path();
    if found.len() < known {
        return Some(format!(
            "{path}: {} in circles, put this number in place of {known}",
            found.len()
        ));
    }
    let lines = found.iter().map(|(from, to)| format!("\n    {from} imports {}", to.join(", ")));
    (found.len() > known).then(|| {
        format!("{path}: {} in circles, {known} known{}", found.len(), lines.collect::<String>())
    })
}
