//! What tells the entries of a list apart, by the list's name: two entries of one key are one when configs are merged, and a mistake within
//! a config.
//!
//! Source: the `Key`, `IgnoreDuplicates` and `MergedKeys` methods in Ignition's `config/v3_3/types`.

use serde_json::Value;

/// Lists whose entries are all kept.
const APPENDED: [&str; 3] = ["append", "mountOptions", "options"];

/// Lists that share one set of keys: what is in one of them cannot be in another.
const SHARED: [&[&str]; 2] =
    [&["directories", "files", "links"], &["shouldExist", "shouldNotExist"]];

/// Whether a list keeps all entries, whatever they are.
pub(crate) fn is_appended(list: &str) -> bool {
    APPENDED.contains(&list)
}

/// The other lists beside this one that share its keys.
pub(crate) fn beside(list: &str) -> impl Iterator<Item = &'static str> {
    let group = SHARED.iter().find(|group| group.contains(&list)).copied().unwrap_or_default();
    group.iter().copied().filter(move |other| *other != list)
}

/// What tells this entry from others; `None` for one that has nothing, which is a mistake of its own.
pub(crate) fn key(list: &str, entry: &Value) -> Option<String> {
    let Value::Object(fields) = entry else { return entry.as_str().map(str::to_owned) };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    match list {
        "directories" | "files" | "links" => text("path"),
        "disks" | "filesystems" => text("device"),
        "merge" | "certificateAuthorities" => text("source"),
        "tang" => text("url"),
        "partitions" => match fields.get("number").and_then(Value::as_i64) {
            Some(number) if number != 0 => Some(format!("number:{number}")),
            Some(_) | None => text("label").map(|label| format!("label:{label}")),
        },
        _ => text("name"),
    }
}
