//! Software RAID of the emulated machine, as in ironic-python-agent 13: the arrays stay until a step deletes them, also when disks are erased.

use serde_json::{Value, json};

use super::outcome::Failure;
use crate::machine::Machine;

/// Runs a step of the RAID interface for a node; `None` if there is no such step.
pub(super) fn run(
    machine: &Machine,
    step: &str,
    node: Option<&Value>,
    args: Option<&Value>,
) -> Option<Result<Value, Failure>> {
    Some(match step {
        "create_configuration" => match node.and_then(|node| node.get("target_raid_config")) {
            Some(wanted) => create(machine, wanted),
            None => Ok(json!({})),
        },
        "apply_configuration" => {
            if args.and_then(|args| args.get("delete_existing")) != Some(&Value::Bool(false)) {
                machine.lock_raid().take();
            }
            create(machine, args.and_then(|args| args.get("raid_config")).unwrap_or(&Value::Null))
        }
        "delete_configuration" => {
            machine.lock_raid().take();
            Ok(Value::Null)
        }
        _ => return None,
    })
}

fn create(machine: &Machine, wanted: &Value) -> Result<Value, Failure> {
    let logical = wanted.get("logical_disks").and_then(Value::as_array);
    let logical = logical.map(Vec::as_slice).unwrap_or_default();
    let is_software = |disk: &Value| disk.get("controller") == Some(&json!("software"));
    if !logical.iter().any(is_software) {
        return Ok(json!({}));
    }
    let refused = |why: &str| Failure::new("SoftwareRAIDError", why);
    if !logical.iter().all(is_software) {
        return Err(refused("All logical disks need the controller \"software\"."));
    }
    if machine.spec().disks.len() < 2 {
        return Err(refused("A mirror needs two disks, and there is one."));
    }
    let mut raid = machine.lock_raid();
    if raid.is_some() {
        return Err(refused("The disks have partitions of an array."));
    }
    *raid = Some(wanted.clone());
    Ok(wanted.clone())
}
