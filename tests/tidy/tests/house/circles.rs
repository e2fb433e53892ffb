//! Checks the imports inside each crate: a crate reads from its front door down, and no module leads back.

use std::collections::BTreeMap;

use tidy::{Crate, assert_none, circles, crates};

#[test]
fn modules_import_downwards_only() {
    let crates = crates();
    let wrong = crates.iter().filter_map(|one| objection(one, &circles(&one.sources())));
    assert_none("modules that import from each other", wrong);
}

fn objection(one: &Crate, found: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let lines = found.iter().map(|(from, to)| format!("\n    {from} imports {}", to.join(", ")));
    (!found.is_empty())
        .then(|| format!("{}: {} in circles{}", one.path(), found.len(), lines.collect::<String>()))
}
