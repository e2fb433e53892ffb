//! The RAID configuration that an operator wants for a node.

use serde_json::{Map, Value};

use crate::logical_disk::logical_disks;
use crate::{ChangeRefused, Node, RaidInterface, check_idle};

/// A property of a logical disk.
#[derive(Clone, Copy, Debug)]
pub struct LogicalDiskProperty {
    pub name: &'static str,
    /// The meaning of the property, as one or two sentences.
    meaning: &'static str,
    kind: PropertyKind,
    required: bool,
}

#[derive(Clone, Copy, Debug)]
enum PropertyKind {
    Text,
    Boolean,
    Word(&'static [&'static str]),
    /// A number of disks.
    Count,
    /// A size in GiB, or the rest of the space.
    Size,
    /// The names of disks, or what at least two disks have to be.
    Disks,
}

const fn property(
    name: &'static str,
    kind: PropertyKind,
    meaning: &'static str,
) -> LogicalDiskProperty {
    LogicalDiskProperty { name, meaning, kind, required: false }
}

const LEVELS: &[&str] = &["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"];

/// The properties of a logical disk, sorted by name. Ironic has them in `drivers/raid_config_schema.json`.
#[rustfmt::skip]
pub const LOGICAL_DISK_PROPERTIES: [LogicalDiskProperty; 10] = {
    use PropertyKind::{Boolean, Count, Disks, Size, Text, Word};
    [
        property("controller", Text, "The RAID controller of the disk."),
        property("disk_type", Word(&["hdd", "ssd"]), "The kind of physical disks: hdd or ssd."),
        property("interface_type", Word(&["sata", "scsi", "sas"]), "The interface of the physical disks: sata, scsi or sas."),
        property("is_root_volume", Boolean, "Whether the operating system is installed on this disk (default: false)."),
        property("number_of_physical_disks", Count, "How many physical disks are used (default: as few as the level allows)."),
        property("physical_disks", Disks, "The physical disks. The property controller is required beside this one."),
        LogicalDiskProperty { required: true, ..property("raid_level", Word(LEVELS), "JBOD, 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0.") },
        property("share_physical_disks", Boolean, "Whether other logical disks may use the same physical disks (default: false)."),
        LogicalDiskProperty { required: true, ..property("size_gb", Size, "The size in GiB, or MAX for the rest of the space.") },
        property("volume_name", Text, "The name of the volume (default: a generated name)."),
    ]
};

impl LogicalDiskProperty {
    /// Returns the meaning of the property, and whether the property is required.
    pub fn describe(&self) -> String {
        let need = if self.required { "Required." } else { "Optional." };
        format!("{} {need}", self.meaning)
    }
}

/// Why a RAID configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RaidRefused {
    #[error(transparent)]
    Busy(#[from] ChangeRefused),
    #[error("node \"{node}\" has the raid interface {interface}, which combines no disks")]
    Unsupported { node: String, interface: &'static str },
    #[error("{field}: {problem}")]
    Field {
        /// The path of the wrong field, such as `logical_disks[1].size_gb`.
        field: String,
        problem: String,
    },
}

/// Returns `node` with this target RAID configuration. An empty configuration removes the target.
pub fn with_target_raid_config(
    node: &Node,
    wanted: Map<String, Value>,
) -> Result<Node, RaidRefused> {
    check_idle(node)?;
    if !wanted.is_empty() {
        match node.raid_interface() {
            RaidInterface::Fake | RaidInterface::Agent => check_raid_config(&wanted)?,
            RaidInterface::Redfish | RaidInterface::Idrac => {
                check_raid_config(&wanted)?;
                logical_disks(&wanted).map_err(|why| refuse(why.field, why.problem))?;
            }
            RaidInterface::NoRaid => {
                let interface = RaidInterface::NoRaid.as_str();
                return Err(RaidRefused::Unsupported { node: node.label(), interface });
            }
        }
    }
    Ok(Node { target_raid_config: wanted, ..node.clone() })
}

fn refuse(field: impl Into<String>, problem: impl Into<String>) -> RaidRefused {
    RaidRefused::Field { field: field.into(), problem: problem.into() }
}

/// Checks the fields of a RAID configuration.
pub(crate) fn check_raid_config(config: &Map<String, Value>) -> Result<(), RaidRefused> {
    if let Some(unknown) = config.keys().find(|key| *key != "logical_disks") {
        return Err(refuse(shortened(unknown), "is not a field of a RAID configuration"));
    }
    let disks = config.get("logical_disks").and_then(Value::as_array);
    let disks = disks.filter(|disks| !disks.is_empty());
    let disks = disks.ok_or_else(|| refuse("logical_disks", "must be a list of at least one"))?;
    for (number, disk) in disks.iter().enumerate() {
        let path = format!("logical_disks[{number}]");
        let disk = disk.as_object().ok_or_else(|| refuse(&path, "must be an object"))?;
        check_disk(&path, disk)?;
    }
    let roots = disks.iter().filter(|disk| disk["is_root_volume"] == Value::Bool(true)).count();
    if roots > 1 {
        let problem = format!("{roots} disks have is_root_volume; only one can have it");
        return Err(refuse("logical_disks", problem));
    }
    Ok(())
}

fn check_disk(path: &str, disk: &Map<String, Value>) -> Result<(), RaidRefused> {
    for (name, value) in disk {
        let known = LOGICAL_DISK_PROPERTIES.iter().find(|property| property.name == name);
        let field = || format!("{path}.{}", shortened(name));
        let property =
            known.ok_or_else(|| refuse(field(), "is not a property of a logical disk"))?;
        property.kind.check(value).map_err(|problem| refuse(field(), problem))?;
    }
    let mut required = LOGICAL_DISK_PROPERTIES.iter().filter(|property| property.required);
    if let Some(missing) = required.find(|property| !disk.contains_key(property.name)) {
        return Err(refuse(format!("{path}.{}", missing.name), "is required"));
    }
    if disk.contains_key("physical_disks") && !disk.contains_key("controller") {
        return Err(refuse(format!("{path}.controller"), "is required beside physical_disks"));
    }
    Ok(())
}

impl PropertyKind {
    fn check(self, value: &Value) -> Result<(), String> {
        let (fits, expected) = match self {
            PropertyKind::Text => (value.is_string(), "text".to_owned()),
            PropertyKind::Boolean => (value.is_boolean(), "true or false".to_owned()),
            PropertyKind::Word(words) => {
                let fits = value.as_str().is_some_and(|word| words.contains(&word));
                (fits, format!("one of {}", words.join(", ")))
            }
            PropertyKind::Count => {
                let fits = value.as_u64().is_some_and(|count| count > 0);
                (fits, "a whole number greater than 0".to_owned())
            }
            PropertyKind::Size => {
                let fits = value.as_u64().is_some() || value == "MAX";
                (fits, "a whole number of GiB, or \"MAX\"".to_owned())
            }
            PropertyKind::Disks => (
                value.as_array().is_some_and(|disks| are_disks(disks)),
                "a list of names, or of at least two objects".to_owned(),
            ),
        };
        if fits { Ok(()) } else { Err(format!("must be {expected}")) }
    }
}

fn are_disks(disks: &[Value]) -> bool {
    disks.iter().all(Value::is_string) || disks.len() > 1 && disks.iter().all(Value::is_object)
}

/// A name of the client, cut to a length that fits into a message.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, State};

    fn node() -> Node {
        Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH)
    }

    #[track_caller]
    fn check(config: Value, want: &str) {
        let wanted = config.as_object().unwrap();
        let refused = with_target_raid_config(&node(), wanted.clone());
        match refused {
            Ok(node) => assert_eq!((want, &node.target_raid_config), ("", wanted)),
            Err(why) => assert_eq!(why.to_string(), want),
        }
    }

    /// Checks a configuration of one disk with these properties, besides the required ones.
    #[track_caller]
    fn check_one(more: Value, want: &str) {
        let mut disk = json!({"raid_level": "1", "size_gb": 100});
        disk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check(json!({"logical_disks": [disk]}), want);
    }

    #[test]
    fn disks_need_a_level_and_a_size() {
        check_one(json!({}), "");
        check_one(json!({"size_gb": "MAX"}), "");
        check_one(json!({"size_gb": 0}), "");
        let size = "logical_disks[0].size_gb: must be a whole number of GiB, or \"MAX\"";
        check_one(json!({"size_gb": -1}), size);
        check_one(json!({"size_gb": 1.5}), size);
        check_one(json!({"size_gb": "100"}), size);
        let level =
            "logical_disks[0].raid_level: must be one of JBOD, 0, 1, 2, 5, 6, 1+0, 5+0, 6+0";
        check_one(json!({"raid_level": "7"}), level);
        check_one(json!({"raid_level": 1}), level);
        check(
            json!({"logical_disks": [{"size_gb": 1}]}),
            "logical_disks[0].raid_level: is required",
        );
        check(
            json!({"logical_disks": [{"raid_level": "0"}]}),
            "logical_disks[0].size_gb: is required",
        );
    }

    #[test]
    fn every_other_property_is_checked() {
        check_one(json!({"volume_name": "a", "disk_type": "ssd", "interface_type": "sas"}), "");
        check_one(
            json!({"disk_type": "tape"}),
            "logical_disks[0].disk_type: must be one of hdd, ssd",
        );
        check_one(json!({"volume_name": 1}), "logical_disks[0].volume_name: must be text");
        check_one(
            json!({"is_root_volume": "yes"}),
            "logical_disks[0].is_root_volume: must be true or false",
        );
        check_one(json!({"number_of_physical_disks": 1}), "");
        check_one(
            json!({"number_of_physical_disks": 0}),
            "logical_disks[0].number_of_physical_disks: must be a whole number greater than 0",
        );
        check_one(
            json!({"color": "red"}),
            "logical_disks[0].color: is not a property of a logical disk",
        );
    }

    #[test]
    fn physical_disks_are_names_or_objects_of_a_controller() {
        check_one(json!({"controller": "c", "physical_disks": ["a"]}), "");
        check_one(json!({"controller": "c", "physical_disks": [{}, {}]}), "");
        let disks =
            "logical_disks[0].physical_disks: must be a list of names, or of at least two objects";
        check_one(json!({"controller": "c", "physical_disks": [{}]}), disks);
        check_one(json!({"controller": "c", "physical_disks": ["a", {}]}), disks);
        check_one(
            json!({"physical_disks": ["a"]}),
            "logical_disks[0].controller: is required beside physical_disks",
        );
    }

    #[test]
    fn a_configuration_has_disks_and_one_root_volume_at_most() {
        check(json!({}), "");
        let empty = "logical_disks: must be a list of at least one";
        check(json!({"logical_disks": []}), empty);
        check(json!({"logical_disks": {}}), empty);
        check(json!({"logical_disks": [1]}), "logical_disks[0]: must be an object");
        check(json!({"disks": []}), "disks: is not a field of a RAID configuration");
        let root = json!({"raid_level": "1", "size_gb": 1, "is_root_volume": true});
        check(json!({"logical_disks": [root]}), "");
        check(
            json!({"logical_disks": [root, root]}),
            "logical_disks: 2 disks have is_root_volume; only one can have it",
        );
    }

    #[test]
    fn a_node_without_raid_or_with_work_is_refused() {
        let disks = json!({"logical_disks": [{"raid_level": "1", "size_gb": 1}]});
        let disks = disks.as_object().unwrap().clone();
        let plain = Node { driver: Driver::Ipmi, ..node() };
        let refused = with_target_raid_config(&plain, disks.clone()).unwrap_err();
        assert!(matches!(refused, RaidRefused::Unsupported { interface: "no-raid", .. }));
        assert_eq!(with_target_raid_config(&plain, Map::new()), Ok(plain.clone()));
        let mut by_agent = plain;
        by_agent.interfaces.raid = Some(RaidInterface::Agent);
        let with_target = with_target_raid_config(&by_agent, disks.clone()).unwrap();
        assert_eq!(with_target.target_raid_config, disks);
        by_agent.interfaces.raid = Some(RaidInterface::Redfish);
        let with_target = with_target_raid_config(&by_agent, disks.clone()).unwrap();
        assert_eq!(with_target.target_raid_config, disks);
        let jbod = json!({"logical_disks": [{"raid_level": "JBOD", "size_gb": 1}]});
        let jbod = jbod.as_object().unwrap().clone();
        let refused = with_target_raid_config(&by_agent, jbod).unwrap_err().to_string();
        assert!(refused.starts_with("logical_disks[0].raid_level: a BMC makes"), "{refused}");
        let busy = Node { provision_state: State::Cleaning, ..node() };
        let refused = with_target_raid_config(&busy, Map::new()).unwrap_err();
        assert!(matches!(refused, RaidRefused::Busy(ChangeRefused::Busy { .. })));
    }

    #[test]
    fn the_properties_are_sorted_and_described() {
        assert!(LOGICAL_DISK_PROPERTIES.is_sorted_by_key(|property| property.name));
        assert!(LOGICAL_DISK_PROPERTIES.iter().all(|property| property.meaning.ends_with('.')));
        let described =
            |name| LOGICAL_DISK_PROPERTIES.iter().find(|it| it.name == name).unwrap().describe();
        assert_eq!(described("controller"), "The RAID controller of the disk. Optional.");
        assert_eq!(described("raid_level"), "JBOD, 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0. Required.");
    }
}
