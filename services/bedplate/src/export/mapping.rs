//! Turns a node of baremetald into the requests that create it in an Ironic. Pure.

use serde_json::{Value, json};

use crate::bmc_secrets::{Secrets, masked, remove_masked};
use crate::ironic::{Object, is_set, word};

/// The reason of the maintenance by which an export makes baremetald let go of a node.
pub(super) const QUIESCED: &str = "bedplate export: Ironic takes over this node";

/// The fields of a new node besides those whose name ends in `_interface`.
const CREATED: [&str; 17] = [
    "automated_clean",
    "conductor_group",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "extra",
    "instance_info",
    "instance_name",
    "instance_uuid",
    "lessee",
    "name",
    "owner",
    "properties",
    "resource_class",
    "shard",
    "uuid",
];

/// The fields that are set after the node has reached its state.
pub(super) const MARKS: [&str; 5] =
    ["automated_clean", "protected", "protected_reason", "retired", "retired_reason"];

/// The fields that an Ironic without the other resources cannot have.
const LOST: [&str; 3] = ["allocation_uuid", "chassis_uuid", "parent_node"];

/// A node of baremetald with its ports.
#[derive(Clone, Debug, Default)]
pub(super) struct OurNode {
    pub(super) node: Object,
    pub(super) groups: Vec<Object>,
    pub(super) ports: Vec<Object>,
}

/// The state that a node reaches in Ironic without a power event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Enroll,
    Manageable,
    Available,
    Active,
}

/// The node as Ironic gets it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exported {
    /// The body that creates the node.
    pub(super) node: Object,
    pub(super) groups: Vec<Object>,
    pub(super) ports: Vec<Object>,
    pub(super) traits: Value,
    pub(super) goal: Goal,
    /// The values of [`MARKS`].
    pub(super) marks: Object,
    /// The reason of maintenance, if the node is in maintenance.
    pub(super) maintenance: Option<Value>,
    pub(super) losses: Vec<String>,
    pub(super) obstacles: Vec<String>,
}

/// Whether an earlier run has put the node into maintenance.
pub(super) fn is_quiesced(node: &Object) -> bool {
    word(node, "maintenance_reason") == QUIESCED
}

impl Goal {
    /// The name of the state in the Bare Metal API.
    pub(super) fn state(self) -> &'static str {
        match self {
            Goal::Enroll => "enroll",
            Goal::Manageable => "manageable",
            Goal::Available => "available",
            Goal::Active => "active",
        }
    }

    /// The nearest state to the node's own one; `None` while work is in progress. Ironic's API creates no node in another state.
    fn near(state: &str) -> Option<Goal> {
        match state {
            "enroll" => Some(Goal::Enroll),
            "available" => Some(Goal::Available),
            "active" | "rescue" | "rescue failed" | "unrescue failed" | "service failed" => {
                Some(Goal::Active)
            }
            "manageable" | "inspect failed" | "clean failed" | "deploy failed" | "adopt failed"
            | "error" => Some(Goal::Manageable),
            _ => None,
        }
    }
}

/// Makes the requests for a node.
pub(super) fn exported(ours: &OurNode, secrets: &Secrets) -> Exported {
    let mut node = ours.node.clone();
    let (mut losses, mut obstacles) = (Vec::new(), Vec::new());
    obstacles.extend(masked(&secrets.unmask(&mut node, "driver_info")));
    secrets.unmask(&mut node, "instance_info");
    if let Some(Value::Object(info)) = node.get_mut("instance_info") {
        losses.extend(remove_masked(info, "instance_info"));
    }
    let state = word(&node, "provision_state");
    let goal = Goal::near(state).unwrap_or(Goal::Enroll);
    if Goal::near(state).is_none() {
        obstacles.push(format!("provision_state: work is in progress in state {state:?}"));
    } else if goal.state() != state {
        losses.push(format!("provision_state: {state:?} becomes {:?}", goal.state()));
    }
    let lost = LOST.iter().filter(|field| !word(&node, field).is_empty());
    losses.extend(lost.map(|field| (*field).to_owned()));
    let is_in_maintenance = is_set(&node, "maintenance") && !is_quiesced(&node);
    let maintenance =
        is_in_maintenance.then(|| node.get("maintenance_reason").cloned().unwrap_or_default());
    Exported {
        groups: ours.groups.iter().map(group).collect(),
        ports: ours.ports.iter().map(port).collect(),
        traits: node.get("traits").cloned().unwrap_or_else(|| json!([])),
        marks: marks(&node, goal),
        node: created(&node, goal),
        goal,
        maintenance,
        losses,
        obstacles,
    }
}

/// The body that creates the node. Ironic skips the cleaning of a node whose `automated_clean` is false on its way to `available`: cleaning
/// would restart the machine.
fn created(node: &Object, goal: Goal) -> Object {
    let is_sent = |field: &str| CREATED.contains(&field) || field.ends_with("_interface");
    let mut body = node.clone();
    body.retain(|field, value| is_sent(field) && !value.is_null());
    if goal == Goal::Available {
        body.insert("automated_clean".to_owned(), false.into());
    }
    body
}

/// The marks of the node. Only an active node can be protected, and an available node cannot be retired.
fn marks(node: &Object, goal: Goal) -> Object {
    let mut marks = node.clone();
    marks.retain(|field, _| MARKS.contains(&field.as_str()));
    for (mark, states) in [
        ("protected", &[Goal::Active][..]),
        ("retired", &[Goal::Enroll, Goal::Manageable, Goal::Active]),
    ] {
        if !states.contains(&goal) || !is_set(node, mark) {
            marks.retain(|field, _| !field.starts_with(mark));
        }
    }
    marks
}

fn group(group: &Object) -> Object {
    let dropped =
        ["links", "ports", "created_at", "updated_at", "internal_info", "dynamic_portgroup"];
    without(group, &dropped)
}

fn port(port: &Object) -> Object {
    without(port, &["links", "created_at", "updated_at", "internal_info"])
}

fn without(object: &Object, dropped: &[&str]) -> Object {
    let mut object = object.clone();
    object.retain(|field, value| !dropped.contains(&field.as_str()) && !value.is_null());
    object
}

/// The interfaces of `node` that `driver`, as Ironic shows it, has not enabled.
pub(super) fn unsupported(node: &Object, driver: &Object) -> Vec<String> {
    let mut missing = Vec::new();
    for (field, value) in node.iter().filter(|(field, _)| field.ends_with("_interface")) {
        let enabled = driver.get(&format!("enabled_{field}s")).and_then(Value::as_array);
        if enabled.is_some_and(|enabled| !enabled.contains(value)) {
            missing.push(format!("{field}: Ironic has not enabled {value}"));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn node(more: Value) -> OurNode {
        let mut node = object(json!({
            "uuid": "u1", "name": "n1", "driver": "redfish", "provision_state": "active", "traits": ["CUSTOM_A"],
            "driver_info": {"redfish_address": "a"}, "instance_info": {"image_source": "i"}, "extra": {}, "owner": null,
            "deploy_interface": "direct", "created_at": "2026-01-02T03:04:05+00:00", "protected": true, "protected_reason": "p",
            "retired": false, "retired_reason": null, "automated_clean": null, "maintenance": false, "links": [],
        }));
        node.extend(object(more));
        OurNode { node, ..OurNode::default() }
    }

    fn exported_with(more: Value) -> Exported {
        exported(&node(more), &Secrets::default())
    }

    #[test]
    fn a_node_in_use_is_adopted_and_then_protected() {
        let it = exported_with(json!({}));
        assert_eq!((it.goal, &it.losses, &it.obstacles), (Goal::Active, &Vec::new(), &Vec::new()));
        let want = json!({
            "uuid": "u1", "name": "n1", "driver": "redfish", "driver_info": {"redfish_address": "a"},
            "instance_info": {"image_source": "i"}, "extra": {}, "deploy_interface": "direct",
        });
        assert_eq!(Value::Object(it.node), want);
        let marks = json!({"automated_clean": null, "protected": true, "protected_reason": "p"});
        assert_eq!(Value::Object(it.marks), marks);
        assert_eq!((it.traits, it.maintenance), (json!(["CUSTOM_A"]), None));
    }

    #[test]
    fn a_free_node_is_not_cleaned() {
        let it = exported_with(json!({"provision_state": "available", "automated_clean": true}));
        assert_eq!((it.goal, &it.node["automated_clean"]), (Goal::Available, &json!(false)));
        assert_eq!(it.marks["automated_clean"], true, "the value comes back afterwards");
    }

    #[test]
    fn a_state_that_ironic_cannot_create_is_a_loss() {
        for (state, near) in
            [("rescue", "active"), ("clean failed", "manageable"), ("error", "manageable")]
        {
            let it = exported_with(json!({"provision_state": state}));
            assert_eq!(it.losses, [format!("provision_state: {state:?} becomes {near:?}")]);
            assert_eq!(it.obstacles, Vec::<String>::new());
        }
        let busy = exported_with(json!({"provision_state": "deploying"}));
        assert_eq!(busy.obstacles, ["provision_state: work is in progress in state \"deploying\""]);
    }

    #[test]
    fn a_password_that_is_not_known_keeps_the_node() {
        let it = exported_with(json!({"driver_info": {"redfish_password": "******"}}));
        assert_eq!(it.obstacles.len(), 1);
    }

    #[test]
    fn the_maintenance_of_an_earlier_run_is_not_exported() {
        let ours = json!({"maintenance": true, "maintenance_reason": QUIESCED});
        assert_eq!(exported_with(ours).maintenance, None);
        let theirs = json!({"maintenance": true, "maintenance_reason": "fan"});
        assert_eq!(exported_with(theirs).maintenance, Some(json!("fan")));
    }

    #[test]
    fn an_interface_that_ironic_has_not_enabled_is_named() {
        let driver = object(
            json!({"enabled_deploy_interfaces": ["direct"], "enabled_raid_interfaces": ["no-raid"]}),
        );
        let of = |raid: &str| {
            unsupported(
                &object(json!({"deploy_interface": "direct", "raid_interface": raid})),
                &driver,
            )
        };
        assert_eq!(of("no-raid"), Vec::<String>::new());
        assert_eq!(of("fake"), ["raid_interface: Ironic has not enabled \"fake\""]);
    }
}
