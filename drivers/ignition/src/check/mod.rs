//! Checks the rules for a config that its types cannot express. Each mistake names its place as a JSON path.
//!
//! Sources: the `Validate` methods in Ignition's `config/v3_3/types`, and mistakes that Ignition accepts but that fail on the machine.

mod disks;
mod files;
mod mistake;
mod places;
mod resources;
mod units;

use ignition_config::v3_3::Config;
use serde_json::Value;

use crate::lists::{is_appended, key, lists_with_same_keys};
pub use mistake::Mistake;
use places::ConfigValue;

/// Returns all mistakes in this config.
pub fn check(config: &Config) -> Vec<Mistake> {
    check_value(&serde_json::to_value(config).expect("a config is JSON"))
}

/// Returns all mistakes in JSON that deserializes into a config.
pub(crate) fn check_value(config: &Value) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let root = ConfigValue::root(config);
    every_place(&root, &mut |place| {
        duplicates(place, &mut mistakes);
        resources::check(place, &mut mistakes);
    });
    files::check(&root, &mut mistakes);
    disks::check(&root, &mut mistakes);
    units::check(&root, &mut mistakes);
    mistakes
}

fn every_place(place: &ConfigValue<'_>, visit: &mut impl FnMut(&ConfigValue<'_>)) {
    visit(place);
    for child in place.children() {
        every_place(&child, visit);
    }
}

/// Reports entries with the same key, within a list and across lists that share their keys.
fn duplicates(place: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let Value::Object(fields) = place.value else { return };
    for list in fields.keys().filter(|list| !is_appended(list)) {
        let entries = place.list(list);
        for (index, entry) in entries.iter().enumerate() {
            let Some(its_key) = key(list, entry.value) else { continue };
            let is_it = |list: &str, other: &ConfigValue<'_>| {
                key(list, other.value).as_ref() == Some(&its_key)
            };
            let before = entries[..index].iter().find(|other| is_it(list, other));
            // Of two lists that share their keys, only the one with the later name reports, so that a pair is reported once.
            let earlier = lists_with_same_keys(list).filter(|other| *other < list.as_str());
            let others: Vec<(&str, ConfigValue<'_>)> = earlier
                .flat_map(|list| place.list(list).into_iter().map(move |it| (list, it)))
                .collect();
            let elsewhere =
                others.iter().find(|(list, other)| is_it(list, other)).map(|(_, it)| it);
            if let Some(other) = before.or(elsewhere) {
                mistakes.push(entry.mistake(format!("has the same key as {}", other.path)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
