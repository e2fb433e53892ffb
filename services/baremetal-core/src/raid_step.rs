//! The RAID steps of the agent, and what RAID steps change in the node: as `AgentRAID` in `ironic/drivers/modules/agent.py`, and
//! `update_raid_info` in `ironic/common/raid.py`.

use hardware::{RaidLevel, RaidVolume, StorageController};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::inspection::set_capability;
use crate::raid::check_raid_config;
use crate::{Interface, Node, RaidInterface, RaidRefused, Step, StepRunner};

/// The format of Python's `str(datetime)`, in which Ironic writes the time of a RAID configuration.
const PYTHON_TIME: &str = "%Y-%m-%d %H:%M:%S%.6f";

/// A step of the agent's RAID interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RaidStep {
    /// Makes the target configuration of the node.
    Create,
    /// Makes the configuration of its argument.
    Apply {
        /// Whether the arrays of the node are removed first.
        deletes: bool,
    },
    Delete,
}

impl RaidStep {
    fn of(step: &Step) -> Option<RaidStep> {
        if step.runner != StepRunner::Agent || step.name.interface != Interface::Raid {
            return None;
        }
        match step.name.step.as_str() {
            "create_configuration" => Some(RaidStep::Create),
            "apply_configuration" => {
                let deletes = step.args.get("delete_existing") != Some(&Value::Bool(false));
                Some(RaidStep::Apply { deletes })
            }
            "delete_configuration" => Some(RaidStep::Delete),
            _ => None,
        }
    }
}

/// Why a RAID step cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RaidStepRefused {
    #[error("node \"{node}\" has no target RAID configuration; set one, and run the step again")]
    NoTarget { node: String },
    #[error("raid_config.{0}")]
    Config(RaidRefused),
    #[error("raid_config: must be an object")]
    NoObject,
}

/// Checks the configuration that a step makes, before the agent gets the step. Every other step passes.
///
/// # Errors
///
/// Names the wrong field of the configuration, or tells that there is none.
pub fn check_raid_step(node: &Node, step: &Step) -> Result<(), RaidStepRefused> {
    match RaidStep::of(step) {
        Some(RaidStep::Create) if node.target_raid_config.is_empty() => {
            Err(RaidStepRefused::NoTarget { node: node.label() })
        }
        Some(RaidStep::Apply { .. }) => {
            let config = step.args.get("raid_config").and_then(Value::as_object);
            let config = config.ok_or(RaidStepRefused::NoObject)?;
            check_raid_config(config).map_err(RaidStepRefused::Config)
        }
        Some(RaidStep::Create | RaidStep::Delete) | None => Ok(()),
    }
}

/// Removes the recorded configuration before a step that removes the arrays. A failure on the way leaves no configuration that is not there.
pub(crate) fn before_raid_step(node: &mut Node, step: &Step) {
    match RaidStep::of(step) {
        Some(RaidStep::Delete | RaidStep::Apply { deletes: true }) => node.raid_config.clear(),
        Some(RaidStep::Create | RaidStep::Apply { deletes: false }) | None => {}
    }
}

/// Returns the node after a step, with the configuration that the agent has made; `None` for a step that is not of RAID.
///
/// # Errors
///
/// Fails if the agent made something and did not tell what.
pub(crate) fn after_raid_step(
    node: &Node,
    step: &Step,
    built: Option<&Map<String, Value>>,
    now: Timestamp,
) -> Option<Result<Node, String>> {
    let mut next = node.clone();
    match RaidStep::of(step)? {
        RaidStep::Delete => {
            next.raid_config.clear();
            next.properties.remove("root_device");
        }
        RaidStep::Create | RaidStep::Apply { .. } => {
            let Some(built) = built else {
                let step = &step.name;
                return Some(Err(format!(
                    "the agent reports no RAID configuration after the step {step}: it has made no software RAID. Give each logical disk the controller \"software\", and run the step again"
                )));
            };
            record_built(&mut next, built, now);
        }
    }
    Some(Ok(next))
}

/// Records a configuration, and the size and the level of its root volume, by which schedulers choose nodes.
fn record_built(node: &mut Node, built: &Map<String, Value>, now: Timestamp) {
    node.raid_config = built.clone();
    let time = now.strftime(PYTHON_TIME).to_string();
    node.raid_config.insert("last_updated".to_owned(), time.into());
    let disks = built.get("logical_disks").and_then(Value::as_array);
    let root = disks.into_iter().flatten().find(|disk| disk["is_root_volume"] == true);
    let Some(root) = root else { return };
    if let Some(gib) = root["size_gb"].as_u64() {
        node.properties.insert("local_gb".to_owned(), gib.into());
    }
    if let Some(hint) = root.get("root_device_hint") {
        node.properties.insert("root_device".to_owned(), hint.clone());
    }
    if let Some(level) = root["raid_level"].as_str() {
        set_capability(node, "raid_level", level);
    }
}

impl Node {
    /// Returns the node with the RAID volumes that its BMC lists as its configuration, in Ironic's form. `root` is the path of the volume on
    /// which the operating system is to be installed, if the step made one; otherwise the recorded one keeps its mark.
    pub fn with_raid_volumes(
        &self,
        controllers: &[StorageController],
        root: Option<&str>,
        now: Timestamp,
    ) -> Node {
        let before = self.raid_config.get("logical_disks").and_then(Value::as_array);
        let roots = before.into_iter().flatten().filter(|disk| disk["is_root_volume"] == true);
        let roots: Vec<(Value, Value)> =
            roots.map(|disk| (disk["id"].clone(), disk["controller"].clone())).collect();
        let described = |controller: &StorageController, volume: &RaidVolume| {
            let mut disk = json!({
                "id": volume.id,
                "name": volume.name,
                "controller": controller.id,
                "size_gb": volume.size_bytes.map(|bytes| bytes >> 30),
                "raid_level": volume.level.map(RaidLevel::as_str),
            });
            let was_root = roots.contains(&(disk["id"].clone(), disk["controller"].clone()));
            if root.map_or(was_root, |root| root == volume.path) {
                disk["is_root_volume"] = true.into();
            }
            disk
        };
        let disks = controllers.iter().flat_map(|controller| {
            let volumes = controller.volumes.iter().filter(|volume| volume.is_raid);
            volumes.map(move |volume| described(controller, volume))
        });
        let built = Map::from_iter([("logical_disks".to_owned(), disks.collect())]);
        let mut next = self.clone();
        record_built(&mut next, &built, now);
        next
    }

    /// Returns the RAID configurations that the agent gets with a step: the target, and the one that the agent has made. A node whose RAID
    /// is not the agent's has none.
    pub fn raid_for_agent(&self) -> Map<String, Value> {
        if self.raid_interface() != RaidInterface::Agent {
            return Map::new();
        }
        Map::from_iter([
            ("target_raid_config".to_owned(), self.target_raid_config.clone().into()),
            ("raid_config".to_owned(), self.raid_config.clone().into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, NodeUuid, StepKind, StepName};

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.interfaces.raid = Some(RaidInterface::Agent);
        node.raid_config = object(json!({"logical_disks": []}));
        node.properties = object(
            json!({"root_device": {"name": "/dev/md0"}, "local_gb": 1, "capabilities": "raid_level:5,x:y"}),
        );
        node
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn step(name: &str, args: Value) -> Step {
        Step {
            kind: StepKind::Clean,
            runner: StepRunner::Agent,
            name: StepName { interface: Interface::Raid, step: name.to_owned() },
            args: object(args),
            priority: 0,
            reboots: false,
            children: None,
        }
    }

    #[test]
    fn a_created_configuration_is_recorded_with_its_time_and_its_root_volume() {
        let built = object(json!({"logical_disks": [
            {"size_gb": 100, "raid_level": "1", "is_root_volume": true},
            {"size_gb": "MAX", "raid_level": "0"},
        ]}));
        let now = Timestamp::from_microsecond(1_500_000).unwrap();
        let after =
            after_raid_step(&node(), &step("create_configuration", json!({})), Some(&built), now);
        let after = after.unwrap().unwrap();
        assert_eq!(after.raid_config["last_updated"], "1970-01-01 00:00:01.500000");
        assert_eq!(after.raid_config["logical_disks"], built["logical_disks"]);
        let want = json!({
            "root_device": {"name": "/dev/md0"}, "local_gb": 100, "capabilities": "x:y,raid_level:1",
        });
        assert_eq!(Value::Object(after.properties), want);

        let rest = object(json!({"logical_disks": [{
            "size_gb": "MAX", "raid_level": "1", "is_root_volume": true, "root_device_hint": {"wwn": "0x1"},
        }]}));
        let apply = step("apply_configuration", json!({"raid_config": {}}));
        let after = after_raid_step(&node(), &apply, Some(&rest), now).unwrap().unwrap();
        assert_eq!(after.properties["root_device"], json!({"wwn": "0x1"}));
        assert_eq!(after.properties["local_gb"], 1);
    }

    #[test]
    fn a_step_that_made_nothing_fails() {
        for name in ["create_configuration", "apply_configuration"] {
            let after =
                after_raid_step(&node(), &step(name, json!({})), None, Timestamp::UNIX_EPOCH);
            let why = after.unwrap().unwrap_err();
            assert!(why.contains(&format!("after the step raid.{name}: it has made no")), "{why}");
        }
    }

    #[test]
    fn a_deletion_removes_the_configuration_and_the_hint() {
        let after = after_raid_step(
            &node(),
            &step("delete_configuration", json!({})),
            None,
            Timestamp::UNIX_EPOCH,
        );
        let after = after.unwrap().unwrap();
        assert!(after.raid_config.is_empty());
        assert_eq!(after.properties.get("root_device"), None);
        assert_eq!(after.properties["local_gb"], 1);
    }

    #[test]
    fn the_configuration_is_forgotten_before_its_arrays_are_removed() {
        for (name, args, is_kept) in [
            ("delete_configuration", json!({}), false),
            ("apply_configuration", json!({}), false),
            ("apply_configuration", json!({"delete_existing": true}), false),
            ("apply_configuration", json!({"delete_existing": false}), true),
            ("create_configuration", json!({}), true),
            ("erase_devices", json!({}), true),
        ] {
            let mut node = node();
            before_raid_step(&mut node, &step(name, args.clone()));
            assert_eq!(!node.raid_config.is_empty(), is_kept, "{name} {args}");
        }
        // A conductor's step of the same name is another step.
        let conductors =
            Step { runner: StepRunner::Conductor, ..step("delete_configuration", json!({})) };
        let mut other = node();
        before_raid_step(&mut other, &conductors);
        assert_eq!(other, node());
        assert_eq!(after_raid_step(&other, &conductors, None, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn a_step_begins_with_a_configuration_only() {
        let create = step("create_configuration", json!({}));
        let refused = check_raid_step(&node(), &create).unwrap_err().to_string();
        let id = NodeUuid::nil();
        assert_eq!(
            refused,
            format!(
                "node \"{id}\" has no target RAID configuration; set one, and run the step again"
            )
        );
        let disks = json!({"logical_disks": [{"size_gb": 1, "raid_level": "1"}]});
        let ready = Node { target_raid_config: object(disks.clone()), ..node() };
        assert_eq!(check_raid_step(&ready, &create), Ok(()));
        let apply = |config: Value| {
            check_raid_step(&node(), &step("apply_configuration", json!({"raid_config": config})))
        };
        assert_eq!(apply(disks), Ok(()));
        let why = apply(json!({"logical_disks": [{"size_gb": 1}]})).unwrap_err().to_string();
        assert_eq!(why, "raid_config.logical_disks[0].raid_level: is required");
        assert_eq!(apply(json!(1)), Err(RaidStepRefused::NoObject));
        assert_eq!(check_raid_step(&node(), &step("delete_configuration", json!({}))), Ok(()));
    }

    #[test]
    fn the_volumes_that_a_bmc_lists_are_recorded() {
        let volume = |id: &str, level, size: u64| RaidVolume {
            id: id.to_owned(),
            path: format!("/v/{id}"),
            name: Some(format!("name {id}")),
            is_raid: level != Some(RaidLevel::Raid0),
            level,
            size_bytes: Some(size << 30),
            drives: Vec::new(),
        };
        let controller = StorageController {
            id: "RAID.1".to_owned(),
            path: "/s/1".to_owned(),
            levels: None,
            applies: hardware::ApplyTime::Untold,
            drives: Vec::new(),
            volumes: vec![
                volume("1", Some(RaidLevel::Raid1), 100),
                volume("2", Some(RaidLevel::Raid0), 7),
                volume("3", None, 50),
            ],
        };
        let controllers = [controller];
        let after = node().with_raid_volumes(&controllers, Some("/v/1"), Timestamp::UNIX_EPOCH);
        let want = json!([
            {"id": "1", "name": "name 1", "controller": "RAID.1", "size_gb": 100, "raid_level": "1", "is_root_volume": true},
            {"id": "3", "name": "name 3", "controller": "RAID.1", "size_gb": 50, "raid_level": null},
        ]);
        assert_eq!(after.raid_config["logical_disks"], want);
        assert_eq!(after.raid_config["last_updated"], "1970-01-01 00:00:00.000000");
        assert_eq!(after.properties["local_gb"], 100);
        assert_eq!(after.properties["capabilities"], "x:y,raid_level:1");
        let again = after.with_raid_volumes(&controllers, None, Timestamp::UNIX_EPOCH);
        assert_eq!(again.raid_config["logical_disks"], want);
        let none = node().with_raid_volumes(&[], None, Timestamp::UNIX_EPOCH);
        assert_eq!(none.raid_config["logical_disks"], json!([]));
        assert_eq!(none.properties, node().properties);
    }

    #[test]
    fn only_an_agent_with_raid_gets_the_configurations() {
        let names: Vec<String> = node().raid_for_agent().keys().cloned().collect();
        assert_eq!(names, ["raid_config", "target_raid_config"]);
        let plain = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        assert!(plain.raid_for_agent().is_empty());
    }
}
