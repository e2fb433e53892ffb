//! The RAID steps of the interface `redfish`, and what they request. The arguments are those of `RedfishRAID` in
//! `ironic/drivers/modules/redfish/raid.py`.

use std::fmt::Display;

use serde_json::Value;

use crate::logical_disk::{LogicalDisk, RaidStepProblem, logical_disks};
use crate::raid::check_raid_config;
use crate::{APPLY_RAID, CREATE_RAID, DELETE_RAID, Node, Step};

/// The changes that a step requests of the storage controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidRequest {
    /// The logical disks to make, each with its place in the configuration.
    pub disks: Vec<(usize, LogicalDisk)>,
    /// Whether all RAID volumes are deleted first.
    pub deletes_existing: bool,
}

/// Returns what a RAID step requests.
///
/// # Errors
///
/// Names the wrong field of the arguments or of the target configuration, or tells that there is no configuration.
pub fn raid_request(node: &Node, step: &Step) -> Result<RaidRequest, RaidStepProblem> {
    let is_true = |name: &str, default| match step.args.get(name) {
        None => Ok(default),
        Some(Value::Bool(told)) => Ok(*told),
        Some(_) => Err(RaidStepProblem::new(name, "must be true or false")),
    };
    let (field, config, makes_others) = match step.name.step.as_str() {
        DELETE_RAID => return Ok(RaidRequest { disks: Vec::new(), deletes_existing: true }),
        CREATE_RAID if node.target_raid_config.is_empty() => {
            let problem = "the node has none; set one, and run the step again";
            return Err(RaidStepProblem::new("target_raid_config", problem));
        }
        CREATE_RAID => ("target_raid_config", &node.target_raid_config, true),
        APPLY_RAID => {
            let config = step.args.get("raid_config").and_then(Value::as_object);
            let no_object = || RaidStepProblem::new("raid_config", "must be an object");
            // Ironic's documents tell another default than its code has.
            ("raid_config", config.ok_or_else(no_object)?, false)
        }
        _ => return Err(RaidStepProblem::new("step", "is no step of the RAID interface redfish")),
    };
    let within = |why: &dyn Display| RaidStepProblem::new(field, why.to_string());
    check_raid_config(config).map_err(|why| within(&why))?;
    let disks = logical_disks(config).map_err(|why| within(&why))?;
    let roots = is_true("create_root_volume", true)?;
    let others = is_true("create_nonroot_volumes", makes_others)?;
    let deletes_existing = is_true("delete_existing", false)?;
    let is_wanted = |disk: &LogicalDisk| if disk.is_root { roots } else { others };
    let disks: Vec<_> = disks.into_iter().enumerate().filter(|(_, disk)| is_wanted(disk)).collect();
    if disks.is_empty() {
        let problem = "create_root_volume and create_nonroot_volumes leave no logical disk of it";
        return Err(RaidStepProblem::new(field, problem));
    }
    Ok(RaidRequest { disks, deletes_existing })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Driver, Interface, NodeUuid, RaidInterface, StepKind, StepName, StepRunner};

    fn node(target: &Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
        node.interfaces.raid = Some(RaidInterface::Redfish);
        node.target_raid_config = target.as_object().unwrap().clone();
        node
    }

    fn request(target: &Value, step: &str, args: &Value) -> Result<RaidRequest, String> {
        let step = Step {
            kind: StepKind::Clean,
            runner: StepRunner::Conductor,
            name: StepName { interface: Interface::Raid, step: step.to_owned() },
            args: args.as_object().unwrap().clone(),
            priority: 0,
            reboots: false,
            children: None,
        };
        raid_request(&node(target), &step).map_err(|why| why.to_string())
    }

    fn two_disks() -> Value {
        json!({"logical_disks": [
            {"size_gb": 10, "raid_level": "1", "is_root_volume": true},
            {"size_gb": "MAX", "raid_level": "5"},
        ]})
    }

    #[test]
    fn the_arguments_choose_the_logical_disks() {
        let numbers = |step: &str, args: Value| {
            let asked = request(&two_disks(), step, &args).unwrap();
            let disks = asked.disks.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
            (disks, asked.deletes_existing)
        };
        assert_eq!(numbers(CREATE_RAID, json!({})), (vec![0, 1], false));
        assert_eq!(numbers(CREATE_RAID, json!({"create_root_volume": false})), (vec![1], false));
        let args = json!({"create_nonroot_volumes": false, "delete_existing": true});
        assert_eq!(numbers(CREATE_RAID, args), (vec![0], true));
        assert_eq!(numbers(APPLY_RAID, json!({"raid_config": two_disks()})), (vec![0], false));
        let args = json!({"raid_config": two_disks(), "create_nonroot_volumes": true});
        assert_eq!(numbers(APPLY_RAID, args), (vec![0, 1], false));
        assert_eq!(numbers(DELETE_RAID, json!({})), (vec![], true));
    }

    #[test]
    fn wrong_arguments_and_configurations_are_refused_by_name() {
        let none = request(&json!({}), CREATE_RAID, &json!({})).unwrap_err();
        assert_eq!(none, "target_raid_config: the node has none; set one, and run the step again");
        let refused = |args| request(&two_disks(), CREATE_RAID, &args).unwrap_err();
        assert_eq!(
            refused(json!({"delete_existing": 1})),
            "delete_existing: must be true or false"
        );
        let neither = json!({"create_root_volume": false, "create_nonroot_volumes": false});
        assert_eq!(
            refused(neither),
            "target_raid_config: create_root_volume and create_nonroot_volumes leave no logical disk of it"
        );
        let apply =
            |config| request(&json!({}), APPLY_RAID, &json!({"raid_config": config})).unwrap_err();
        assert_eq!(apply(json!(1)), "raid_config: must be an object");
        let one = |more: Value| {
            let mut disk = json!({"size_gb": 1, "raid_level": "1", "is_root_volume": true});
            disk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            apply(json!({"logical_disks": [disk]}))
        };
        let only = "a BMC makes volumes of the levels 0, 1, 5, 6, 1+0, 5+0, 6+0 only";
        for level in ["JBOD", "2"] {
            let why = one(json!({"raid_level": level}));
            assert_eq!(why, format!("raid_config: logical_disks[0].raid_level: {only}"));
        }
        assert_eq!(
            one(json!({"interface_type": "scsi"})),
            "raid_config: logical_disks[0].interface_type: Redfish has no drives with scsi"
        );
        assert_eq!(
            one(json!({"controller": "c", "physical_disks": [{}, {}]})),
            "raid_config: logical_disks[0].physical_disks: must be a list of ids of drives"
        );
        assert_eq!(
            one(json!({"number_of_physical_disks": 3})),
            "raid_config: logical_disks[0].raid_level: level 1 cannot have 3 physical disks"
        );
        let named =
            json!({"controller": "c", "physical_disks": ["a", "b"], "number_of_physical_disks": 3});
        assert_eq!(
            one(named),
            "raid_config: logical_disks[0].number_of_physical_disks: is 3, and physical_disks names 2"
        );
        assert_eq!(
            one(json!({"size_gb": 0})),
            "raid_config: logical_disks[0].size_gb: must be greater than 0"
        );
    }
}
