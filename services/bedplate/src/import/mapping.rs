//! Turns a node as Ironic shows it into the body of an import, and tells which values are lost and what forbids the import. Pure.

use serde_json::{Value, json};

use super::ironic_node::{IronicNode, is_quiesced};
use crate::bmc_secrets::{Secrets, masked, remove_masked};
use crate::ironic::{Object, word};

/// The fields of a node that Ironic computes, or that describe work of Ironic's conductor.
const COMPUTED: [&str; 14] = [
    "clean_step",
    "conductor",
    "deploy_step",
    "driver_internal_info",
    "health",
    "links",
    "portgroups",
    "ports",
    "reservation",
    "service_step",
    "states",
    "target_power_state",
    "target_provision_state",
    "volume",
];

/// The secrets that are of no use after an import: the URL that Ironic computes anew for each deployment, and the password of a rescue that
/// has ended.
const UNUSED_SECRETS: [&str; 3] = [
    "instance_info.hashed_rescue_password",
    "instance_info.image_url",
    "instance_info.rescue_password",
];

/// The body of an import.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MovedNode {
    pub(super) body: Value,
    /// The values that baremetald does not have.
    pub(super) losses: Vec<String>,
    /// The reasons why the node cannot be taken.
    pub(super) obstacles: Vec<String>,
}

/// An interface that replaces another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    field: String,
    old: String,
    new: String,
}

impl Replacement {
    /// Parses `FIELD:OLD=NEW`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.split_once(':').and_then(|(field, rest)| {
            let (old, new) = rest.split_once('=')?;
            let is_whole = field.ends_with("_interface") && !old.is_empty() && !new.is_empty();
            let of = str::to_owned;
            is_whole.then(|| Replacement { field: of(field), old: of(old), new: of(new) })
        });
        parsed.ok_or_else(|| "must be FIELD:OLD=NEW with the name of an interface field".to_owned())
    }
}

/// Makes the body of an import of `found`.
pub(super) fn moved(
    found: &IronicNode,
    secrets: &Secrets,
    replacements: &[Replacement],
) -> MovedNode {
    let mut node = found.node.clone();
    let (mut losses, mut obstacles) = (Vec::new(), busy(&node));
    obstacles.extend(masked(&secrets.unmask(&mut node, "driver_info")));
    secrets.unmask(&mut node, "instance_info");
    if let Some(Value::Object(info)) = node.get_mut("instance_info") {
        let removed = remove_masked(info, "instance_info").into_iter();
        let lost = removed.filter(|path| !UNUSED_SECRETS.contains(&path.as_str()));
        losses.extend(lost.map(|path| format!("{path} (masked by Ironic)")));
    }
    losses.extend(take_lost(&mut node));
    losses.extend(replace(&mut node, replacements));
    if is_quiesced(&node) {
        node.insert("maintenance".to_owned(), false.into());
        node.insert("maintenance_reason".to_owned(), Value::Null);
    }
    node.retain(|field, _| !COMPUTED.contains(&field.as_str()));
    let parts = |all: &[Object], kind: &str, losses: &mut Vec<String>| {
        all.iter().map(|it| part(it, kind, losses)).collect::<Vec<Object>>()
    };
    let targets = found.targets.iter().map(|target| {
        let mut target = target.clone();
        let id = word(&target, "uuid").to_owned();
        let missing = secrets.unmask(&mut target, "properties");
        let missing: Vec<String> =
            missing.iter().map(|path| format!("volume target {id}: {path}")).collect();
        obstacles.extend(masked(&missing));
        target
    });
    let targets: Vec<Object> = targets.collect();
    let body = json!({
        "portgroups": parts(&found.portgroups, "port group", &mut losses),
        "ports": parts(&found.ports, "port", &mut losses),
        "volume_connectors": parts(&found.connectors, "volume connector", &mut losses),
        "volume_targets": parts(&targets, "volume target", &mut losses),
        "allocation": found.allocation,
        "inventory": found.inventory,
        "node": node,
    });
    MovedNode { body, losses, obstacles }
}

/// The reasons why Ironic's conductor has to end its work on the node first.
fn busy(node: &Object) -> Vec<String> {
    let mut reasons = Vec::new();
    let holder = word(node, "reservation");
    if !holder.is_empty() {
        reasons.push(format!("reservation: Ironic's conductor {holder} works on the node"));
    }
    let power = word(node, "target_power_state");
    if !power.is_empty() {
        reasons.push(format!("target_power_state: the change to {power:?} is in progress"));
    }
    reasons
}

/// Removes the values that baremetald cannot store, and names those that are not empty.
fn take_lost(node: &mut Object) -> Vec<String> {
    let mut losses = Vec::new();
    if let Some(Value::Object(data)) = node.remove("network_data")
        && !data.is_empty()
    {
        losses.push("network_data".to_owned());
    }
    losses
}

fn replace(node: &mut Object, replacements: &[Replacement]) -> Vec<String> {
    let mut losses = Vec::new();
    for Replacement { field, old, new } in replacements {
        if word(node, field) == old {
            node.insert(field.clone(), new.as_str().into());
            losses.push(format!("{field}: {old} is replaced by {new}"));
        }
    }
    losses
}

/// A part of a node without the fields that Ironic computes. `internal_info` holds the networks that Ironic has attached.
fn part(it: &Object, kind: &str, losses: &mut Vec<String>) -> Object {
    let (mut it, id) = (it.clone(), word(it, "uuid").to_owned());
    if let Some(Value::Object(info)) = it.remove("internal_info") {
        losses.extend(info.keys().map(|key| format!("{kind} {id}: internal_info.{key}")));
    }
    if it.remove("dynamic_portgroup") == Some(Value::Bool(true)) {
        losses.push(format!("{kind} {id}: dynamic_portgroup"));
    }
    it.retain(|field, _| !["links", "ports"].contains(&field.as_str()));
    it
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ironic::LET_GO_BY_IMPORT;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn node(more: Value) -> IronicNode {
        let mut node = object(json!({
            "uuid": "u1", "name": "n1", "driver": "redfish", "provision_state": "active",
            "driver_info": {"redfish_address": "a"}, "instance_info": {}, "network_data": {},
            "fault": null, "reservation": null, "target_power_state": null, "maintenance": false,
            "maintenance_reason": null, "created_at": "2026-01-02T03:04:05+00:00",
            "conductor": "c", "links": [], "ports": [], "driver_internal_info": {"a": 1},
        }));
        node.extend(object(more));
        IronicNode { node, ..IronicNode::default() }
    }

    fn moved_with(found: &IronicNode) -> MovedNode {
        moved(found, &Secrets::default(), &[])
    }

    #[test]
    fn a_node_keeps_everything_that_ironic_did_not_compute() {
        let MovedNode { body, losses, obstacles } = moved_with(&node(json!({})));
        assert_eq!((losses, obstacles), (Vec::new(), Vec::new()));
        let want = json!({
            "uuid": "u1", "name": "n1", "driver": "redfish", "provision_state": "active",
            "driver_info": {"redfish_address": "a"}, "instance_info": {}, "maintenance": false,
            "maintenance_reason": null, "fault": null, "created_at": "2026-01-02T03:04:05+00:00",
        });
        assert_eq!(body["node"], want);
    }

    #[test]
    fn a_node_with_an_unknown_password_is_not_taken() {
        let found = node(json!({"driver_info": {"redfish_password": "******"}}));
        let want =
            "driver_info.redfish_password: this secret is masked: add it to the file of --secrets";
        assert_eq!(moved_with(&found).obstacles, [want]);
    }

    #[test]
    fn a_volume_with_an_unknown_password_keeps_its_node() {
        let mut found = node(json!({}));
        found.targets =
            vec![object(json!({"uuid": "t", "properties": {"auth_password": "******"}}))];
        let obstacles = moved_with(&found).obstacles;
        assert_eq!(obstacles.len(), 1);
        assert!(
            obstacles[0].starts_with("volume target t: properties.auth_password"),
            "{obstacles:?}"
        );
    }

    #[test]
    fn work_in_progress_keeps_a_node() {
        let found = node(json!({"reservation": "c1", "target_power_state": "power off"}));
        let want = [
            "reservation: Ironic's conductor c1 works on the node",
            "target_power_state: the change to \"power off\" is in progress",
        ];
        assert_eq!(moved_with(&found).obstacles, want);
    }

    #[test]
    fn every_lost_value_is_named() {
        let mut found = node(json!({
            "network_data": {"links": []},
            "instance_info": {"configdrive": "******", "image_url": "******", "image_source": "i"},
            "raid_interface": "redfish", "vendor_interface": "redfish",
        }));
        let port = json!({"uuid": "p1", "internal_info": {"tenant_vif_port_id": "v"}, "links": []});
        found.ports = vec![object(port)];
        let group =
            json!({"uuid": "g1", "internal_info": {}, "ports": [], "dynamic_portgroup": true});
        found.portgroups = vec![object(group)];
        let replaced = [Replacement::parse("raid_interface:redfish=no-raid").unwrap()];
        let MovedNode { body, losses, obstacles } = moved(&found, &Secrets::default(), &replaced);
        assert_eq!(obstacles, Vec::<String>::new());
        let want = [
            "instance_info.configdrive (masked by Ironic)",
            "network_data",
            "raid_interface: redfish is replaced by no-raid",
            "port group g1: dynamic_portgroup",
            "port p1: internal_info.tenant_vif_port_id",
        ];
        assert_eq!(losses, want);
        assert_eq!(body["ports"], json!([{"uuid": "p1"}]));
        assert_eq!(body["portgroups"], json!([{"uuid": "g1"}]));
        assert_eq!(body["node"]["instance_info"], json!({"image_source": "i"}));
        assert_eq!(body["node"]["raid_interface"], "no-raid");
        assert_eq!(body["node"]["vendor_interface"], "redfish");
    }

    #[test]
    fn the_maintenance_of_an_earlier_run_is_not_taken() {
        let quiesced = json!({"maintenance": true, "maintenance_reason": LET_GO_BY_IMPORT});
        let body = moved_with(&node(quiesced)).body;
        assert_eq!(
            (&body["node"]["maintenance"], &body["node"]["maintenance_reason"]),
            (&json!(false), &Value::Null)
        );
        let by_operator = json!({"maintenance": true, "maintenance_reason": "fan"});
        let body = moved_with(&node(by_operator)).body;
        assert_eq!(body["node"]["maintenance_reason"], "fan");
    }

    #[test]
    fn a_replacement_names_an_interface() {
        let parsed = Replacement::parse("network_interface:flat=noop").unwrap();
        let Replacement { field, old, new } = parsed;
        assert_eq!(
            (field.as_str(), old.as_str(), new.as_str()),
            ("network_interface", "flat", "noop")
        );
        for wrong in
            ["raid_interface", "raid_interface:=x", "driver:ilo=redfish", "raid_interface:a="]
        {
            assert!(Replacement::parse(wrong).is_err(), "{wrong}");
        }
    }
}
