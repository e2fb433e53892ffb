//! Chooses the disk for the image by Ironic's root device hints.
//!
//! A hint is a property of a disk and a condition: `{"size": ">= 100", "vendor": "s== ATA"}`. Text is compared without regard to case, and
//! sizes are in GiB. Without hints the agent takes the smallest disk that has at least a minimum size.

use agent_protocol::Disk;
use serde_json::{Map, Value};

/// The original's minimum: smaller disks are boot media and caches.
pub const LEAST_MIB: u64 = 4096;

/// The reasons why no disk was chosen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// The hint names an unknown property.
    #[error("the root device hint {0:?} names no property of a disk")]
    Unknown(String),
    /// The hint's value cannot be compared with the property.
    #[error("the root device hint {name} cannot be {value}")]
    InvalidValue { name: String, value: String },
    /// No disk matches the hints.
    #[error("no disk matches the root device hints {hints}; the machine has {disks}")]
    NoMatch { hints: String, disks: String },
    /// There are no hints, and no disk has the minimum size.
    #[error(
        "no disk has {least_mib} MiB; use a root device hint to choose a smaller one; the machine has {disks}"
    )]
    TooSmall { least_mib: u64, disks: String },
}

/// Returns the disk to write to.
pub fn choose<'a>(
    disks: &'a [Disk],
    hints: &Map<String, Value>,
    least_mib: u64,
) -> Result<&'a Disk, HintError> {
    let mut by_size: Vec<&Disk> = disks.iter().collect();
    by_size.sort_by_key(|disk| disk.size);
    if hints.is_empty() {
        let smallest = by_size.into_iter().find(|disk| disk.size >> 20 >= least_mib);
        return smallest.ok_or_else(|| HintError::TooSmall { least_mib, disks: shown(disks) });
    }
    first_of(by_size, hints)?.ok_or_else(|| HintError::NoMatch {
        hints: Value::Object(hints.clone()).to_string(),
        disks: shown(disks),
    })
}

/// Returns the first disk that matches the hints, in the order of `disks`.
pub fn first<'a>(disks: &'a [Disk], hints: &Map<String, Value>) -> Result<&'a Disk, HintError> {
    first_of(disks, hints)?.ok_or_else(|| HintError::NoMatch {
        hints: Value::Object(hints.clone()).to_string(),
        disks: shown(disks),
    })
}

fn first_of<'a>(
    disks: impl IntoIterator<Item = &'a Disk>,
    hints: &Map<String, Value>,
) -> Result<Option<&'a Disk>, HintError> {
    for disk in disks {
        let mut fits = true;
        for (name, value) in hints {
            fits &= matches(disk, name, value)?;
        }
        if fits {
            return Ok(Some(disk));
        }
    }
    Ok(None)
}

fn shown(disks: &[Disk]) -> String {
    match disks {
        [] => "no disk at all".to_owned(),
        some => {
            let one = |disk: &Disk| format!("{} of {} MiB", disk.name, disk.size >> 20);
            some.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

fn matches(disk: &Disk, name: &str, value: &Value) -> Result<bool, HintError> {
    let useless = || HintError::InvalidValue { name: name.to_owned(), value: value.to_string() };
    let wanted = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(useless()),
    };
    let text = |found: Option<&str>| found.is_some_and(|found| text_matches(found, &wanted));
    Ok(match name {
        "name" => text(Some(&disk.name)),
        "serial" => text(disk.serial.as_deref()),
        "wwn" => text(disk.wwn.as_deref()),
        "wwn_with_extension" => text(disk.wwn_with_extension.as_deref()),
        "wwn_vendor_extension" => text(disk.wwn_vendor_extension.as_deref()),
        "model" => text(disk.model.as_deref()),
        "vendor" => text(disk.vendor.as_deref()),
        "hctl" => text(disk.hctl.as_deref()),
        "by_path" => text(disk.by_path.as_deref()),
        "size" => number_matches(disk.size >> 30, &wanted).ok_or_else(useless)?,
        "rotational" => {
            let wanted = operator(&wanted).1.to_lowercase();
            let flag = match wanted.as_str() {
                "true" | "1" | "yes" | "on" | "t" | "y" => true,
                "false" | "0" | "no" | "off" | "f" | "n" => false,
                _ => return Err(useless()),
            };
            flag == disk.rotational
        }
        _ => return Err(HintError::Unknown(name.to_owned())),
    })
}

/// Splits a hint into its operator, empty if there is none, and the value to compare with.
fn operator(wanted: &str) -> (&str, &str) {
    const OPERATORS: &[&str] = &[
        "<all-in>", "<or>", "<in>", "s==", "s!=", "s>=", "s<=", "s>", "s<", "==", "!=", ">=", "<=",
        "=", ">", "<",
    ];
    let found =
        OPERATORS.iter().find_map(|operator| Some((*operator, wanted.strip_prefix(operator)?)));
    let (operator, rest) = found.unwrap_or(("", wanted));
    // "samsung" begins with an s but has no operator; "s== x" has one.
    (operator, rest.trim())
}

fn text_matches(found: &str, wanted: &str) -> bool {
    let (found, wanted) = (found.trim().to_lowercase(), wanted.to_lowercase());
    let (operator, value) = operator(&wanted);
    match operator {
        "s!=" | "!=" => found != value,
        "s>=" | ">=" => *found >= *value,
        "s<=" | "<=" => *found <= *value,
        "s>" | ">" => *found > *value,
        "s<" | "<" => *found < *value,
        "<in>" => found.contains(value),
        "<all-in>" => value.split("<all-in>").all(|word| found.contains(word.trim())),
        "<or>" => value.split("<or>").any(|word| found == word.trim()),
        _ => found == value,
    }
}

/// Compares numbers in GiB. In a hint, a single `=` has always meant "at least".
fn number_matches(found: u64, wanted: &str) -> Option<bool> {
    let (operator, value) = operator(wanted);
    if operator == "<or>" {
        let values: Option<Vec<u64>> =
            value.split("<or>").map(|word| word.trim().parse().ok()).collect();
        return Some(values?.contains(&found));
    }
    let value: u64 = value.parse().ok()?;
    match operator {
        "" | "==" | "s==" => Some(found == value),
        "!=" | "s!=" => Some(found != value),
        "=" | ">=" | "s>=" => Some(found >= value),
        "<=" | "s<=" => Some(found <= value),
        ">" | "s>" => Some(found > value),
        "<" | "s<" => Some(found < value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn machine() -> Vec<Disk> {
        let disk = |name: &str, gib: u64, model: &str, rotational| Disk {
            name: format!("/dev/{name}"),
            size: gib << 30,
            model: Some(model.to_owned()),
            serial: Some(format!("S-{name}")),
            hctl: Some("0:0:0:0".to_owned()),
            rotational,
            ..Disk::default()
        };
        vec![
            disk("sda", 2000, "Samsung SSD 870", false),
            disk("sdb", 500, "ST500DM002", true),
            disk("sdc", 2, "SuperMicro DOM", false),
        ]
    }

    #[track_caller]
    fn check(hints: Value, want: &str) {
        let disks = machine();
        let found = choose(&disks, hints.as_object().unwrap(), LEAST_MIB);
        let shown = match &found {
            Ok(disk) => disk.name.clone(),
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(want), "{shown}");
    }

    #[test]
    fn without_hints_the_smallest_sufficient_disk_is_chosen() {
        check(json!({}), "/dev/sdb");
    }

    #[test]
    fn a_hint_may_name_a_small_disk() {
        check(json!({"name": "/dev/sdc"}), "/dev/sdc");
        check(json!({"serial": "s-SDC"}), "/dev/sdc");
    }

    #[test]
    fn operators_compare_as_documented() {
        check(json!({"size": ">= 501"}), "/dev/sda");
        check(json!({"size": "= 501"}), "/dev/sda");
        check(json!({"size": 500}), "/dev/sdb");
        check(json!({"size": "<or> 1 <or> 2"}), "/dev/sdc");
        check(json!({"model": "samsung ssd 870"}), "/dev/sda");
        check(json!({"model": "s== ST500DM002"}), "/dev/sdb");
        check(json!({"model": "<in> SSD"}), "/dev/sda");
        check(json!({"model": "<all-in> samsung <all-in> 870"}), "/dev/sda");
        check(json!({"rotational": true}), "/dev/sdb");
        check(json!({"rotational": "false", "size": "> 100"}), "/dev/sda");
    }

    #[test]
    fn an_error_lists_the_disks_of_the_machine() {
        check(json!({"serial": "x"}), "no disk matches");
        check(json!({"serial": "x"}), "/dev/sdc of 2048 MiB");
        check(json!({"colour": "red"}), "names no property");
        check(json!({"size": "big"}), "cannot be");
        check(json!({"rotational": [1]}), "cannot be");
        let error = choose(&[], &Map::new(), LEAST_MIB).unwrap_err();
        assert!(error.to_string().contains("no disk at all"));
    }

    proptest! {
        #[test]
        fn no_hint_panics(name in "name|size|model|rotational|x", value: String) {
            let hints = json!({name: value});
            let _ = choose(&machine(), hints.as_object().unwrap(), 0);
        }
    }
}
