//! The payload of notifications about a node: the fields of Ironic's `NodePayload` and its children.

use hardware::BootMode;
use serde_json::{Map, Value, json};

use super::{MASK, fields, maybe_time, time};
use crate::{AgentCommand, Fault, Interface, Node, State, Step, StepKind, Task, Work, reason_of};

/// The interfaces in the payload. `firmware_interface` is in none of Ironic's versions.
const INTERFACES: [Interface; 12] = [
    Interface::Bios,
    Interface::Boot,
    Interface::Console,
    Interface::Deploy,
    Interface::Inspect,
    Interface::Management,
    Interface::Network,
    Interface::Power,
    Interface::Raid,
    Interface::Rescue,
    Interface::Storage,
    Interface::Vendor,
];

/// The fields of `NodePayload`.
pub(super) fn node_fields(node: &Node) -> Map<String, Value> {
    let maintenance = node.maintenance.as_ref();
    let mut data = fields(json!({
        "uuid": node.id.to_string(),
        "name": node.name.as_ref().map(|name| name.as_str()),
        "description": node.description,
        "driver": node.driver.as_str(),
        "extra": node.extra,
        "properties": node.properties,
        "traits": node.traits,
        "resource_class": node.resource_class,
        "conductor_group": node.conductor_group,
        "owner": node.owner,
        "lessee": node.lessee,
        "instance_uuid": node.instance_uuid,
    }));
    data.extend(fields(json!({
        "created_at": time(node.created_at),
        "updated_at": maybe_time(node.updated_at),
        "provision_updated_at": maybe_time(node.provision_updated_at),
        "inspection_started_at": maybe_time(node.inspection_started_at),
        "inspection_finished_at": maybe_time(node.inspection_finished_at),
        "provision_state": node.provision_state.as_str(),
        "target_provision_state": node.leads_to().map(State::as_str),
        "power_state": node.power_state.map(|power| power.as_str()),
        "target_power_state": node.target_power_state().map(|power| power.as_str()),
        "last_error": node.failure.as_ref().map(ToString::to_string),
        "maintenance": maintenance.is_some(),
        "maintenance_reason": maintenance.and_then(|it| it.reason.as_deref()),
        "fault": node.fault().map(Fault::as_str),
        "protected": node.protected.is_some(),
        "protected_reason": reason_of(&node.protected),
        "retired": node.retired.is_some(),
        "retired_reason": reason_of(&node.retired),
    })));
    data.extend(fields(json!({
        "console_enabled": node.console_enabled,
        "disable_power_off": node.disable_power_off,
        "boot_mode": node.boot_mode.map(BootMode::as_str),
        "secure_boot": node.secure_boot,
        "clean_step": current_step(node, StepKind::Clean),
        "deploy_step": deploy_step(node),
    })));
    for interface in INTERFACES {
        let name = format!("{}_interface", interface.as_str());
        data.insert(name, node.interface(interface).into());
    }
    data
}

/// The further fields of `NodeCRUDPayload`.
pub(super) fn crud_fields(node: &Node) -> Map<String, Value> {
    let mut data = instance_info(node);
    data.insert("driver_info".to_owned(), node.driver_info.clone().into());
    data.insert("chassis_uuid".to_owned(), json!(node.chassis));
    data
}

/// The further fields of `NodeSetProvisionStatePayload`, without those of the change. `driver_internal_info` is always empty, as in the API.
pub(super) fn provision_fields(node: &Node) -> Map<String, Value> {
    let mut data = instance_info(node);
    data.insert("driver_internal_info".to_owned(), json!({}));
    data
}

/// The field `instance_info`. Ironic masks `image_url`, which may be a URL with a signature.
fn instance_info(node: &Node) -> Map<String, Value> {
    let mut info = node.instance_info.clone();
    if let Some(url) = info.get_mut("image_url") {
        *url = MASK.into();
    }
    fields(json!({"instance_info": info}))
}

/// The step of this kind that runs now; an empty object without one.
fn current_step(node: &Node, kind: StepKind) -> Value {
    match node.work.as_ref().and_then(Work::task) {
        Some(Task::Step(step)) if step.kind == kind => step_fields(step),
        Some(Task::StepOnChildren(run)) if run.step.kind == kind => step_fields(&run.step),
        Some(_) | None => json!({}),
    }
}

/// The deploy step. Writing the image is one of Ironic's steps.
fn deploy_step(node: &Node) -> Value {
    match node.work.as_ref().and_then(Work::task) {
        Some(Task::Agent(AgentCommand::WriteImage)) => {
            json!({"interface": "deploy", "step": "write_image"})
        }
        Some(_) | None => current_step(node, StepKind::Deploy),
    }
}

fn step_fields(step: &Step) -> Value {
    json!({
        "interface": step.name.interface.as_str(),
        "step": step.name.step,
        "args": step.args,
        "priority": step.priority,
    })
}
