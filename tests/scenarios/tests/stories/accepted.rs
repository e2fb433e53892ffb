//! Discovered machines become nodes: a person accepts them, or inspection rules do. A BMC belongs to one node.

use api_client::baremetald::{AcceptedDiscovery, Discovery, Node as ShownNode};
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::unknown::{appears, discovered};

/// The path of a discovered machine's acceptance.
pub(crate) fn acceptance(machine: &RackedMachine) -> String {
    format!("/bedplate/v1/discoveries/{}/accept", machine.spec().nics[0].mac)
}

fn id(uuid: &str) -> Node {
    Node(uuid.parse().expect("a node has a UUID"))
}

/// Asserts that the node's only port has the switch port of the machine's network card `slot`.
async fn is_linked(lab: &Lab, node: Node, slot: usize) {
    let ports = lab.ports(node).await;
    assert_eq!(ports.len(), 1);
    assert_eq!(Value::Object(ports[0].local_link_connection.clone()), link(slot));
}

async fn nothing_is_left(lab: &Lab) {
    assert_eq!(lab.api().list::<Discovery>("/bedplate/v1/discoveries").await, []);
}

/// The switch port that the emulated switch reports for a network card.
fn link(slot: usize) -> Value {
    json!({
        "switch_id": "02:00:00:00:07:00", "port_id": format!("Ethernet1/{slot}"),
        "switch_info": "rack-tor",
    })
}

#[tokio::test]
async fn a_person_accepts_a_machine_and_installs_it() {
    let settings = Settings { unknown_machines: "discover", ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let machine = appears(&lab, Machine::redfish("stranger")).await;
    let found = discovered(&lab, &machine, |it| !it.data.is_null()).await;
    assert_eq!(found.bmc_addresses, ["127.0.0.1"]);
    assert_eq!(found.neighbours[0].port_id.as_deref(), Some("Ethernet1/0"), "{found:?}");

    let image = lab.image().instance_info();
    let body = json!({"name": "r1u1", "driver_info": machine.driver_info()});
    let accepted = lab.api().send(Method::POST, &acceptance(&machine), Some(&body)).await;
    assert_eq!(accepted.status, 200, "{}", accepted.body);
    let accepted: AcceptedDiscovery =
        serde_json::from_value(accepted.body).expect("an accepted discovery");
    let node = id(&accepted.uuid);
    let shown = lab.node(node).await;
    assert_eq!(shown.provision_state.as_deref(), Some("enroll"));
    assert_eq!(shown.properties["memory_mb"], machine.spec().memory_mib);
    is_linked(&lab, node, 0).await;
    nothing_is_left(&lab).await;

    lab.set(node, "/instance_info", image).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    lab.provision(node, "provide").await.reaches("available").await;
    lab.provision(node, "active").await.reaches("active").await;
}

#[tokio::test]
async fn a_machine_whose_bmc_belongs_to_a_node_stays_a_discovery() {
    let settings = Settings { unknown_machines: "discover", ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let known = lab.rack(Machine::redfish("known")).await;
    let node = lab.manageable(&known).await;
    let machine = appears(&lab, Machine::redfish("stranger")).await;
    discovered(&lab, &machine, |it| !it.data.is_null()).await;
    let body = json!({"name": "twin", "driver_info": known.driver_info()});
    let refused = lab.api().send(Method::POST, &acceptance(&machine), Some(&body)).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.to_string().contains(&node.0.to_string()), "{}", refused.body);
    let again = lab.api().send(Method::POST, "/v1/nodes", Some(&known.node())).await;
    assert_eq!(again.status, 409, "{}", again.body);
    assert_eq!(lab.api().list::<ShownNode>("/v1/nodes").await.len(), 1);
    discovered(&lab, &machine, |_| true).await;
}

/// The configuration by which rules accept machines, and the rule that gives this machine's BMC to its node.
pub(crate) const BY_RULES: &str = "[auto_discovery]\nenabled = true\n";

pub(crate) async fn rule(lab: &Lab, machine: &RackedMachine) {
    let set = |path: &str, value: &Value| json!({"op": "set-attribute", "args": {"path": format!("driver_info/{path}"), "value": value}});
    let info = machine.driver_info();
    let info = info.as_object().expect("an object");
    let mut actions: Vec<Value> = info.iter().map(|(key, value)| set(key, value)).collect();
    actions
        .push(json!({"op": "set-attribute", "args": {"path": "resource_class", "value": "found"}}));
    actions.push(json!({"op": "set-attribute", "args": {"path": "name", "value": "by-rule"}}));
    let known = json!({"op": "eq", "args": {"values": ["{plugin_data[auto_discovered]}", "True"]}});
    let rule = json!({"sensitive": true, "conditions": [known], "actions": actions});
    lab.api().send(Method::POST, "/v1/inspection_rules", Some(&rule)).await.expect("a rule");
}

#[tokio::test]
async fn rules_accept_a_machine() {
    let more = BY_RULES.to_owned();
    let settings = Settings { unknown_machines: "discover", more, ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let machine = lab.rack(Machine::redfish("stranger")).await;
    rule(&lab, &machine).await;
    machine.chassis().push_power_button();
    let found = |list: &Value| Some(list["nodes"][0]["uuid"].as_str()?.to_owned());
    let node = id(&lab.api().until("/v1/nodes", "a node", found).await);
    let shown = lab.node(node).await;
    assert_eq!(shown.name.as_deref(), Some("by-rule"));
    assert_eq!(shown.resource_class.as_deref(), Some("found"));
    assert_eq!(shown.provision_state.as_deref(), Some("enroll"));
    assert_eq!(lab.inventory(node).await.plugin_data["auto_discovered"], true);
    is_linked(&lab, node, 0).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    nothing_is_left(&lab).await;
}

#[tokio::test]
async fn a_machine_that_a_rule_refuses_stays_a_discovery() {
    let more = BY_RULES.to_owned();
    let settings = Settings { unknown_machines: "discover", more, ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let rule = json!({"actions": [{"op": "fail", "args": {"msg": "not ours"}}]});
    lab.api().send(Method::POST, "/v1/inspection_rules", Some(&rule)).await.expect("a rule");
    let machine = appears(&lab, Machine::redfish("stranger")).await;
    let found = discovered(&lab, &machine, |it| it.refused.is_some()).await;
    let why = found.refused.unwrap_or_default();
    assert!(why.contains("not ours"), "the discovery tells why: {why}");
    let body = json!({"driver_info": machine.driver_info()});
    let accepted = lab.api().send(Method::POST, &acceptance(&machine), Some(&body)).await;
    assert_eq!(accepted.status, 200, "a person accepts it: {}", accepted.body);
    let nodes = lab.api().list::<ShownNode>("/v1/nodes").await;
    assert_eq!(nodes.len(), 1, "the rules accepted nothing");
}
