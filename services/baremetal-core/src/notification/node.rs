//! The notifications about a change of a node.

use cloud_event::{EventLevel, Notification};
use hardware::PowerState;
use serde_json::{Map, Value, json};

use super::node_payload::{crud_fields, node_fields, provision_fields};
use super::{PayloadVersion, fields, versioned};
use crate::{Event, Node, State, TRANSITIONS, Task, Work};

const NODE: PayloadVersion = PayloadVersion { name: "NodePayload", version: "1.17" };
const CRUD: PayloadVersion = PayloadVersion { name: "NodeCRUDPayload", version: "1.15" };
const POWER: PayloadVersion = PayloadVersion { name: "NodeSetPowerStatePayload", version: "1.17" };
const CORRECTED: PayloadVersion =
    PayloadVersion { name: "NodeCorrectedPowerStatePayload", version: "1.17" };
const PROVISION: PayloadVersion =
    PayloadVersion { name: "NodeSetProvisionStatePayload", version: "1.18" };

/// Returns the notifications about a node that was created (`before` is `None`), changed or deleted (`after` is `None`), in the order in which
/// they are sent.
pub fn node_notifications(before: Option<&Node>, after: Option<&Node>) -> Vec<Notification> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(new)) => return vec![crud(new, "create")],
        (Some(gone), None) => return vec![crud(gone, "delete")],
        (None, None) => return Vec::new(),
    };
    let mut all = Vec::new();
    if is_described_otherwise(before, after) {
        all.push(crud(after, "update"));
    }
    if before.maintenance != after.maintenance {
        all.push(info(after, "maintenance_set.end", NODE, Map::new()));
    }
    if before.console_enabled != after.console_enabled {
        all.push(info(after, "console_set.end", NODE, Map::new()));
    }
    all.extend(power(before, after));
    all.extend(provision(before, after));
    all
}

fn crud(node: &Node, action: &str) -> Notification {
    info(node, &format!("{action}.end"), CRUD, crud_fields(node))
}

fn info(
    node: &Node,
    event: &str,
    payload: PayloadVersion,
    more: Map<String, Value>,
) -> Notification {
    about(node, event, EventLevel::Info, payload, more)
}

fn about(
    node: &Node,
    event: &str,
    level: EventLevel,
    payload: PayloadVersion,
    more: Map<String, Value>,
) -> Notification {
    let mut data = node_fields(node);
    data.extend(more);
    versioned(format!("baremetal.node.{event}"), level, node.id.to_string(), payload, data)
}

/// Whether a field differs that requests change, besides maintenance and the states.
fn is_described_otherwise(before: &Node, after: &Node) -> bool {
    texts(before) != texts(after)
        || objects(before) != objects(after)
        || before.name != after.name
        || before.driver != after.driver
        || before.interfaces != after.interfaces
        || before.instance_uuid != after.instance_uuid
        || before.traits != after.traits
        || before.conductor_group != after.conductor_group
        || before.parent_node != after.parent_node
        || before.chassis != after.chassis
        || before.automated_clean != after.automated_clean
        || before.disable_power_off != after.disable_power_off
}

fn texts(node: &Node) -> [&Option<String>; 8] {
    let Node { description, resource_class, owner, lessee, shard, .. } = node;
    let Node { protected, retired, instance_name, .. } = node;
    [description, resource_class, owner, lessee, shard, protected, retired, instance_name]
}

fn objects(node: &Node) -> [&Map<String, Value>; 5] {
    let Node { driver_info, properties, extra, instance_info, network_data, .. } = node;
    [driver_info, properties, extra, instance_info, network_data]
}

/// The power state that the conductor is changing the machine to: for a request, or for a task of the node's work.
fn power_goal(node: &Node) -> Option<PowerState> {
    let task = node.work.as_ref().and_then(Work::task);
    let of_work =
        task.and_then(|task| if let Task::Power(goal) = task { Some(*goal) } else { None });
    of_work.or_else(|| node.target_power_state())
}

fn power(before: &Node, after: &Node) -> Vec<Notification> {
    let set = |event: &str, level: EventLevel, to: PowerState| {
        let more = fields(json!({"to_power": to.as_str()}));
        about(after, &format!("power_set.{event}"), level, POWER, more)
    };
    let (was, is) = (power_goal(before), power_goal(after));
    let mut all = Vec::new();
    if was != is {
        all.extend(was.map(|goal| match after.power_state == Some(goal) {
            true => set("end", EventLevel::Info, goal),
            false => set("error", EventLevel::Error, goal),
        }));
        all.extend(is.map(|goal| set("start", EventLevel::Info, goal)));
    }
    if was.is_none() && after.power_state.is_some() && before.power_state != after.power_state {
        let from = before.power_state.map(|power| power.as_str());
        let more = fields(json!({"from_power": from}));
        all.push(info(after, "power_state_corrected.success", CORRECTED, more));
    }
    all
}

fn provision(before: &Node, after: &Node) -> Option<Notification> {
    let (from, to) = (before.provision_state, after.provision_state);
    if from == to {
        return None;
    }
    let event = event(before, after);
    let changes_by_itself = |state: State| state.is_busy() && !state.is_held();
    let (status, level) = match (event, changes_by_itself(from), changes_by_itself(to)) {
        (Some(Event::Fail), _, _) => ("error", EventLevel::Error),
        (_, false, true) => ("start", EventLevel::Info),
        (_, true, false) => ("end", EventLevel::Info),
        (_, true, true) | (_, false, false) => ("success", EventLevel::Info),
    };
    let mut more = provision_fields(after);
    more.extend(fields(json!({
        "event": event.map(|event| event.ironic_word(from)),
        "previous_provision_state": from.as_str(),
        "previous_target_provision_state": before.leads_to().map(State::as_str),
    })));
    Some(about(after, &format!("provision_set.{status}"), level, PROVISION, more))
}

/// The cause of a change of provision state; `None` if one write made several changes.
fn event(before: &Node, after: &Node) -> Option<Event> {
    let (from, to) = (before.provision_state, after.provision_state);
    let possible = || {
        let rows = TRANSITIONS.iter().filter(|row| (row.0, row.2) == (from, to));
        rows.map(|(_, event, _)| *event)
    };
    let is_aborted =
        after.failure.as_ref().is_some_and(|failure| failure.reason == crate::Reason::Aborted);
    let by_hand = after.work.as_ref().is_some_and(|work| work.by_hand);
    // Where two causes lead to the same state, the record tells which one it was.
    let told = possible().find(|event| match event {
        Event::Abort => is_aborted,
        Event::Clean => by_hand,
        Event::Manage
        | Event::Inspect
        | Event::Provide
        | Event::Deploy
        | Event::Rebuild
        | Event::Undeploy
        | Event::Adopt
        | Event::Service
        | Event::Rescue
        | Event::Unrescue
        | Event::Unhold
        | Event::Hold
        | Event::Wait
        | Event::Resume
        | Event::Done
        | Event::DoneManually
        | Event::Fail => false,
    });
    told.or_else(|| possible().next())
}

#[cfg(test)]
mod tests;
