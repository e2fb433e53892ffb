//! Turns a node as Ironic shows it into the body of an import, and tells which values are lost and what forbids the import. Pure.

use serde_json::{Value, json};

use super::history;
use super::ironic_node::IronicNode;
use crate::bmc_secrets::{Secrets, masked, remove_masked};
use crate::ironic::{Object, word};
use crate::let_go::{is_let_go, updated_before};

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

/// The key of the VIF in the internal information of a port or a port group (ironic, `VIFPortIDMixin`).
const VIF: &str = "tenant_vif_port_id";

/// The body of an import.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MovedNode {
    pub(super) body: Value,
    /// The values that baremetald does not have.
    pub(super) losses: Vec<String>,
    /// The reasons why the node cannot be taken.
    pub(super) obstacles: Vec<String>,
}

impl MovedNode {
    /// The same body without the node's network; `None` if the node has none.
    pub(super) fn body_without_network(&self) -> Option<Value> {
        self.has_network().then(|| {
            let mut body = self.body.clone();
            if let Some(Value::Object(node)) = body.get_mut("node") {
                node.remove("network_data");
            }
            body
        })
    }

    /// The loss of the network, if the node that baremetald has lacks it.
    pub(super) fn network_missing_in(&self, ours: &Object) -> Option<String> {
        let is_missing = self.has_network() && !has_network(ours.get("network_data"));
        is_missing.then(|| "network_data: the node has none in baremetald".to_owned())
    }

    fn has_network(&self) -> bool {
        has_network(self.body.pointer("/node/network_data"))
    }
}

/// Whether a document of `network_data` is not empty.
fn has_network(document: Option<&Value>) -> bool {
    document.and_then(Value::as_object).is_some_and(|document| !document.is_empty())
}

/// An interface that replaces another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    field: String,
    old: String,
    new: String,
}

/// The fields of a template with values that another cloud or clusterd may lack.
const TEMPLATE_FIELDS: [&str; 14] = [
    "cluster_distro",
    "docker_storage_driver",
    "external_network_id",
    "fixed_network",
    "fixed_subnet",
    "flavor_id",
    "image_id",
    "keypair",
    "keypair_id",
    "master_flavor_id",
    "name",
    "network_driver",
    "server_type",
    "volume_driver",
];

impl Replacement {
    /// Parses `FIELD:OLD=NEW` for an interface of a node.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = Replacement::of(text, |field| field.ends_with("_interface"));
        parsed.ok_or_else(|| "must be FIELD:OLD=NEW with the name of an interface field".to_owned())
    }

    /// Parses `FIELD:OLD=NEW` for a cluster template.
    pub(super) fn of_template(text: &str) -> Result<Self, String> {
        let parsed = Replacement::of(text, |field| TEMPLATE_FIELDS.contains(&field));
        let why = || {
            format!("must be FIELD:OLD=NEW with one of the fields {}", TEMPLATE_FIELDS.join(", "))
        };
        parsed.ok_or_else(why)
    }

    fn of(text: &str, is_field: impl Fn(&str) -> bool) -> Option<Self> {
        let (field, rest) = text.split_once(':')?;
        let (old, new) = rest.split_once('=')?;
        let is_whole = is_field(field) && !old.is_empty() && !new.is_empty();
        let of = str::to_owned;
        is_whole.then(|| Replacement { field: of(field), old: of(old), new: of(new) })
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
    losses.extend(replace(&mut node, replacements));
    end_maintenance(&mut node);
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
    let (history, older) = history::kept(&found.history);
    if older > 0 {
        let most = history::MOST;
        losses.push(format!("history: the oldest {older} entries (at most {most} are kept)"));
    }
    let body = json!({
        "portgroups": parts(&found.portgroups, "port group", &mut losses),
        "ports": parts(&found.ports, "port", &mut losses),
        "volume_connectors": parts(&found.connectors, "volume connector", &mut losses),
        "volume_targets": parts(&targets, "volume target", &mut losses),
        "allocation": found.allocation,
        "inventory": found.inventory,
        "history": history,
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

/// Undoes the maintenance of an import.
fn end_maintenance(node: &mut Object) {
    if is_let_go(node) {
        if let Some(at) = updated_before(node) {
            node.insert("updated_at".to_owned(), at);
        }
        node.insert("maintenance".to_owned(), false.into());
        node.insert("maintenance_reason".to_owned(), Value::Null);
    }
}

pub(super) fn replace(node: &mut Object, replacements: &[Replacement]) -> Vec<String> {
    let mut losses = Vec::new();
    for Replacement { field, old, new } in replacements {
        if word(node, field) == old {
            node.insert(field.clone(), new.as_str().into());
            losses.push(format!("{field}: {old} is replaced by {new}"));
        }
    }
    losses
}

/// A part of a node without the fields that Ironic computes. Of the internal information only the attached VIF is kept: the rest belongs to
/// work of Ironic's conductor.
fn part(it: &Object, kind: &str, losses: &mut Vec<String>) -> Object {
    let (mut it, id) = (it.clone(), word(it, "uuid").to_owned());
    if let Some(Value::Object(mut info)) = it.remove("internal_info") {
        if let Some(vif @ Value::String(_)) = info.remove(VIF) {
            it.insert("internal_info".to_owned(), json!({VIF: vif}));
        }
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
    use crate::let_go::let_go_reason;

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
            "network_data": {},
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
            "instance_info": {"configdrive": "******", "image_url": "******", "image_source": "i"},
            "raid_interface": "redfish", "vendor_interface": "redfish",
        }));
        let info = json!({"tenant_vif_port_id": "v", "cleaning_vif_port_id": "w"});
        found.ports = vec![object(json!({"uuid": "p1", "internal_info": info, "links": []}))];
        let group =
            json!({"uuid": "g1", "internal_info": {}, "ports": [], "dynamic_portgroup": true});
        found.portgroups = vec![object(group)];
        found.history = vec![object(json!({"uuid": "h", "event": "e"})); history::MOST + 1];
        let replaced = [Replacement::parse("raid_interface:redfish=no-raid").unwrap()];
        let MovedNode { body, losses, obstacles } = moved(&found, &Secrets::default(), &replaced);
        assert_eq!(obstacles, Vec::<String>::new());
        let want = [
            "instance_info.configdrive (masked by Ironic)",
            "raid_interface: redfish is replaced by no-raid",
            "history: the oldest 1 entries (at most 299 are kept)",
            "port group g1: dynamic_portgroup",
            "port p1: internal_info.cleaning_vif_port_id",
        ];
        assert_eq!(losses, want);
        let vif = json!({"tenant_vif_port_id": "v"});
        assert_eq!(body["ports"], json!([{"uuid": "p1", "internal_info": vif}]));
        assert_eq!(body["portgroups"], json!([{"uuid": "g1"}]));
        assert_eq!(body["node"]["instance_info"], json!({"image_source": "i"}));
        assert_eq!(body["node"]["raid_interface"], "no-raid");
        assert_eq!(body["node"]["vendor_interface"], "redfish");
    }

    #[test]
    fn the_maintenance_of_an_earlier_run_is_not_taken() {
        let before = node(json!({"updated_at": "2026-01-02T03:04:06+00:00"})).node;
        let quiesced = json!({
            "maintenance": true, "maintenance_reason": let_go_reason(&before),
            "updated_at": "2026-02-02T00:00:00+00:00",
        });
        let body = moved_with(&node(quiesced)).body;
        for field in ["maintenance", "maintenance_reason", "updated_at"] {
            assert_eq!(body["node"][field], before[field], "{field}");
        }
        let by_operator = json!({"maintenance": true, "maintenance_reason": "fan"});
        let body = moved_with(&node(by_operator)).body;
        assert_eq!(body["node"]["maintenance_reason"], "fan");
    }

    #[test]
    fn a_network_is_left_out_or_is_a_loss_if_baremetald_lacks_it() {
        let document = json!({"links": [], "networks": [], "services": []});
        let of = |document: &Value| moved_with(&node(json!({"network_data": document})));
        let it = of(&document);
        assert_eq!(it.body["node"]["network_data"], document);
        assert_eq!(it.losses, Vec::<String>::new());
        let without = it.body_without_network().unwrap();
        assert_eq!(without["node"].get("network_data"), None);
        let ours = |document: &Value| object(json!({"network_data": document}));
        assert_eq!(it.network_missing_in(&ours(&document)), None);
        assert!(it.network_missing_in(&ours(&json!({}))).is_some());

        let empty = of(&json!({}));
        assert_eq!(empty.body_without_network(), None);
        assert_eq!(empty.network_missing_in(&ours(&json!({}))), None);
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
