//! Chooses the disk for the image by Ironic's root device hints. Without hints the agent takes the smallest disk that has at least a minimum
//! size.

use agent_protocol::{Disk, HintRefused, RootDeviceHints};
use serde_json::{Map, Value};

/// The original's minimum: smaller disks are boot media and caches.
pub const LEAST_MIB: u64 = 4096;

/// The reasons why no disk was chosen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// A hint is not valid.
    #[error(transparent)]
    Refused(#[from] HintRefused),
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
    first_of(by_size, hints, disks)
}

/// Returns the first disk that matches the hints, in the order of `disks`.
pub fn first<'a>(disks: &'a [Disk], hints: &Map<String, Value>) -> Result<&'a Disk, HintError> {
    first_of(disks, hints, disks)
}

fn first_of<'a>(
    ordered: impl IntoIterator<Item = &'a Disk>,
    hints: &Map<String, Value>,
    disks: &[Disk],
) -> Result<&'a Disk, HintError> {
    let read = RootDeviceHints::parse(hints)?;
    let found = ordered.into_iter().find(|disk| read.match_disk(disk));
    found.ok_or_else(|| HintError::NoMatch {
        hints: Value::Object(hints.clone()).to_string(),
        disks: shown(disks),
    })
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

#[cfg(test)]
mod tests {
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
    fn the_smallest_disk_that_matches_is_chosen() {
        check(json!({"size": ">= 501"}), "/dev/sda");
        check(json!({"size": "> 1"}), "/dev/sdc");
        check(json!({"rotational": true}), "/dev/sdb");
        check(json!({"rotational": "false", "size": "> 100"}), "/dev/sda");
        let disks = machine();
        let hints = Map::from_iter([("size".to_owned(), "> 1".into())]);
        assert_eq!(first(&disks, &hints).unwrap().name, "/dev/sda");
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
}
