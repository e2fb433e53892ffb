//! The RAID configuration of a node, as the agent makes it. The limits are those of ironic-python-agent 13 (`validate_configuration`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::RaidError;

/// The name of the array of EFI system partitions, the same as the original's.
pub(super) const ESP_NAME: &str = "esp";

/// Properties of a logical disk that a RAID controller can follow, and the md driver cannot.
const OF_CONTROLLERS: &[&str] = &["disk_type", "interface_type", "number_of_physical_disks"];
/// A superblock has 32 bytes for the name, of which `any:` and a NUL take five (`mdp_superblock_1.set_name`).
const LONGEST_NAME: usize = 27;

/// A logical disk, which becomes an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogicalDisk {
    pub(super) level: Level,
    pub(super) size: Size,
    /// The name of the array; `None` names it after its device.
    pub(super) name: Option<String>,
    pub(super) is_root: Option<bool>,
    /// Hints for one disk each; empty takes all disks.
    pub(super) physical_disks: Vec<Map<String, Value>>,
}

/// A level of the md driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Stripes,
    Mirror,
    OneParity,
    TwoParities,
    StripedMirrors,
}

/// The size of a logical disk's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Gib(u64),
    /// The rest of each disk.
    Rest,
}

impl Level {
    fn named(name: &str) -> Option<Level> {
        Some(match name {
            "0" => Level::Stripes,
            "1" => Level::Mirror,
            "5" => Level::OneParity,
            "6" => Level::TwoParities,
            "1+0" => Level::StripedMirrors,
            _ => return None,
        })
    }

    /// Returns the level's name for mdadm.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Level::Stripes => "0",
            Level::Mirror => "1",
            Level::OneParity => "5",
            Level::TwoParities => "6",
            Level::StripedMirrors => "10",
        }
    }

    const fn least_disks(self) -> usize {
        match self {
            Level::Stripes | Level::Mirror | Level::StripedMirrors => 2,
            Level::OneParity => 3,
            Level::TwoParities => 4,
        }
    }
}

/// Parses a configuration for a machine with this number of disks.
pub(super) fn parse(
    config: &Map<String, Value>,
    disks: usize,
) -> Result<Vec<LogicalDisk>, RaidError> {
    let mut problems = Vec::new();
    let listed = config.get("logical_disks").and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    if !(1..=2).contains(&listed.len()) {
        problems.push("software RAID has one or two logical disks".to_owned());
    }
    let mut parsed: Vec<LogicalDisk> = Vec::new();
    for (number, disk) in listed.iter().enumerate() {
        let of = |problem: String| format!("logical_disks[{number}].{problem}");
        match logical_disk(disk, disks) {
            Ok(disk) => parsed.push(disk),
            Err(wrong) => problems.extend(wrong.into_iter().map(of)),
        }
    }
    if parsed.first().is_some_and(|disk| disk.level != Level::Mirror) && problems.is_empty() {
        problems.push(
            "logical_disks[0].raid_level: the first logical disk has to be RAID-1".to_owned(),
        );
    }
    if parsed.iter().filter(|disk| disk.size == Size::Rest).count() > 1 {
        problems.push("size_gb: only one logical disk can be \"MAX\"".to_owned());
    }
    if parsed.iter().filter(|disk| disk.is_root == Some(true)).count() > 1 {
        problems.push("is_root_volume: only one logical disk can be the root volume".to_owned());
    }
    let names: BTreeSet<_> = parsed.iter().filter_map(|disk| disk.name.as_ref()).collect();
    if names.len() < parsed.iter().filter(|disk| disk.name.is_some()).count() {
        problems.push("volume_name: two logical disks have the same name".to_owned());
    }
    if problems.is_empty() { Ok(parsed) } else { Err(RaidError::Invalid { problems }) }
}

fn logical_disk(disk: &Value, disks: usize) -> Result<LogicalDisk, Vec<String>> {
    let mut problems = Vec::new();
    if disk["controller"] != "software" {
        problems.push("controller: must be \"software\" in all logical disks".to_owned());
    }
    for name in OF_CONTROLLERS.iter().filter(|name| !disk[**name].is_null()) {
        problems.push(format!("{name}: needs a RAID controller; use physical_disks"));
    }
    if disk["share_physical_disks"] == Value::Bool(false) {
        problems.push("share_physical_disks: must be true; use physical_disks".to_owned());
    }
    let level = disk["raid_level"].as_str().and_then(Level::named);
    if level.is_none() {
        problems.push("raid_level: must be 0, 1, 5, 6 or 1+0".to_owned());
    }
    let size = match (&disk["size_gb"], disk["size_gb"].as_u64()) {
        (_, Some(gib)) if gib > 0 => Some(Size::Gib(gib)),
        (Value::String(text), _) if text == "MAX" => Some(Size::Rest),
        _ => None,
    };
    if size.is_none() {
        problems.push("size_gb: must be a whole number above 0, or \"MAX\"".to_owned());
    }
    let name = disk["volume_name"].as_str().map(str::to_owned);
    if name.as_deref().is_some_and(|name| !is_array_name(name)) {
        problems.push(format!(
            "volume_name: needs 1 to {LONGEST_NAME} letters, digits, dots and dashes, and not \"esp\""
        ));
    }
    let given = &disk["physical_disks"];
    let physical_disks = if given.is_null() { Some(Vec::new()) } else { hints(given) };
    if physical_disks.is_none() {
        problems.push("physical_disks: must list hints for two disks or more".to_owned());
    }
    let physical_disks = physical_disks.unwrap_or_default();
    let used = if physical_disks.is_empty() { disks } else { physical_disks.len() };
    if let Some(level) = level.filter(|level| used < level.least_disks()) {
        let least = level.least_disks();
        problems.push(format!("raid_level: needs {least} disks, and there are {used}"));
    }
    match (level, size) {
        (Some(level), Some(size)) if problems.is_empty() => {
            let is_root = disk["is_root_volume"].as_bool();
            Ok(LogicalDisk { level, size, name, is_root, physical_disks })
        }
        _ => Err(problems),
    }
}

fn hints(given: &Value) -> Option<Vec<Map<String, Value>>> {
    let list: Option<Vec<_>> = given.as_array()?.iter().map(|it| it.as_object().cloned()).collect();
    list.filter(|list| list.len() > 1)
}

/// Whether mdadm takes the name as the name of an array: a part of a path below `/dev/md`.
fn is_array_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_short = (1..=LONGEST_NAME).contains(&name.len());
    is_short && name.chars().all(is_legal) && !name.starts_with(['-', '.']) && name != ESP_NAME
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(config: Value, disks: usize, want: &str) {
        match parse(config.as_object().unwrap(), disks) {
            Ok(parsed) => assert_eq!(want, "", "{parsed:?}"),
            Err(why) => {
                let shown = why.to_string();
                let cause = shown.strip_prefix("the RAID configuration cannot be made: ");
                assert_eq!(cause, Some(want));
            }
        }
    }

    /// Checks a mirror with these properties besides the required ones.
    #[track_caller]
    fn check_one(more: Value, want: &str) {
        let mut disk = json!({"controller": "software", "raid_level": "1", "size_gb": "MAX"});
        disk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check(json!({"logical_disks": [disk]}), 2, want);
    }

    #[test]
    fn each_property_is_checked() {
        check_one(json!({}), "");
        check_one(json!({"size_gb": 10, "volume_name": "root.1-a", "is_root_volume": true}), "");
        check_one(json!({"share_physical_disks": true}), "");
        check_one(
            json!({"controller": "c"}),
            "logical_disks[0].controller: must be \"software\" in all logical disks",
        );
        check_one(
            json!({"disk_type": "ssd"}),
            "logical_disks[0].disk_type: needs a RAID controller; use physical_disks",
        );
        check_one(
            json!({"share_physical_disks": false}),
            "logical_disks[0].share_physical_disks: must be true; use physical_disks",
        );
        for level in ["2", "JBOD", "5+0"] {
            let want = "logical_disks[0].raid_level: must be 0, 1, 5, 6 or 1+0";
            check_one(json!({"raid_level": level}), want);
        }
        for size in [json!(0), json!(-1), json!("10"), json!(1.5)] {
            let want = "logical_disks[0].size_gb: must be a whole number above 0, or \"MAX\"";
            check_one(json!({"size_gb": size}), want);
        }
        for name in ["", "-x", "a/b", "esp", "a b", ".x", &"x".repeat(28)] {
            let want = "logical_disks[0].volume_name: needs 1 to 27 letters, digits, dots and dashes, and not \"esp\"";
            check_one(json!({"volume_name": name}), want);
        }
        for disks in [json!([]), json!([{}]), json!(["sda", "sdb"]), json!("sda")] {
            let want = "logical_disks[0].physical_disks: must list hints for two disks or more";
            check_one(json!({"physical_disks": disks}), want);
        }
    }

    #[test]
    fn one_or_two_logical_disks_begin_with_a_mirror() {
        let disk = |level: &str, size: Value| json!({"controller": "software", "raid_level": level, "size_gb": size});
        let both = |second: Value| json!({"logical_disks": [disk("1", json!(10)), second]});
        check(json!({}), 2, "software RAID has one or two logical disks");
        let three = json!({"logical_disks": [disk("1", json!(1)), disk("0", json!(1)), disk("0", json!(1))]});
        check(three, 2, "software RAID has one or two logical disks");
        let stripes = json!({"logical_disks": [disk("0", json!("MAX"))]});
        check(stripes, 2, "logical_disks[0].raid_level: the first logical disk has to be RAID-1");
        for (level, needs) in [("0", 2), ("1+0", 2), ("5", 3), ("6", 4)] {
            check(both(disk(level, json!("MAX"))), needs, "");
            if needs > 2 {
                let want = format!(
                    "logical_disks[1].raid_level: needs {needs} disks, and there are {}",
                    needs - 1
                );
                check(both(disk(level, json!("MAX"))), needs - 1, &want);
            }
        }
        let rest = json!({"logical_disks": [disk("1", json!("MAX")), disk("0", json!("MAX"))]});
        check(rest, 2, "size_gb: only one logical disk can be \"MAX\"");
        let named = |name: &str, is_root: bool| {
            let mut disk = disk("1", json!(1));
            disk["volume_name"] = json!(name);
            disk["is_root_volume"] = json!(is_root);
            disk
        };
        let same = json!({"logical_disks": [named("a", true), named("a", false)]});
        check(same, 2, "volume_name: two logical disks have the same name");
        let roots = json!({"logical_disks": [named("a", true), named("b", true)]});
        check(roots, 2, "is_root_volume: only one logical disk can be the root volume");
    }
}
