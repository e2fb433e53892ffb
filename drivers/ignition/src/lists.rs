//! The keys of list entries. A merge unites two entries with the same key; within one config, two entries with the same key are a mistake.
//!
//! Source: the `Key`, `IgnoreDuplicates` and `MergedKeys` methods in Ignition's `config/v3_3/types`.

use serde_json::Value;

/// Lists that keep all entries, equal ones included.
const APPENDED: [&str; 3] = ["append", "mountOptions", "options"];

/// Groups of lists with one common set of keys: a key in one list of a group cannot be in another.
const SHARED: [&[&str]; 2] =
    [&["directories", "files", "links"], &["shouldExist", "shouldNotExist"]];

/// Whether a merge keeps every entry of this list.
pub(crate) fn is_appended(list: &str) -> bool {
    APPENDED.contains(&list)
}

/// Returns the other lists that share the keys of this list.
pub(crate) fn lists_with_same_keys(list: &str) -> impl Iterator<Item = &'static str> {
    let group = SHARED.iter().find(|group| group.contains(&list)).copied().unwrap_or_default();
    group.iter().copied().filter(move |other| *other != list)
}

/// Returns the key of an entry; `None` if the entry has no key, which another rule reports.
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
