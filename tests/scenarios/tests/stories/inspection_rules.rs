//! Inspection rules change a node by its inventory, or stop its inspection.

use lab::{Lab, Machine};
use reqwest::Method;
use serde_json::{Value, json};

/// Creates a rule, and returns its id.
async fn rule(lab: &Lab, rule: &Value) -> String {
    lab.api().create("/v1/inspection_rules", rule).await
}

/// Classifies machines by their memory and processors.
fn classify() -> Value {
    json!({
        "description": "large machines", "priority": 100,
        "conditions": [{"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]}", 65535]}}],
        "actions": [
            {"op": "set-attribute", "args": {"path": "resource_class", "value": "large"}},
            {"op": "add-trait", "args": {"name": "CUSTOM_LARGE"}},
            {"op": "set-capability", "args": {"name": "cpus", "value": "{inventory[cpu][count]}"}},
            {"op": "set-plugin-data", "args": {"path": "class", "value": "large"}},
        ],
    })
}

#[tokio::test]
async fn rules_change_a_node_by_its_inventory() {
    let lab = Lab::start().await;
    rule(&lab, &classify()).await;
    let mut blueprint = Machine::redfish("r1u1");
    blueprint.spec.cpus = 24;
    blueprint.spec.memory_mib = 96 << 10;
    let large = lab.rack(blueprint).await;
    let mut blueprint = Machine::redfish("r1u2");
    blueprint.spec.memory_mib = 16 << 10;
    let small = lab.rack(blueprint).await;
    let (large, small) = (lab.manageable(&large).await, lab.manageable(&small).await);
    for node in [large, small] {
        lab.provision(node, "inspect").await.reaches("manageable").await;
    }
    let node = lab.node(large).await;
    assert_eq!(node.resource_class.as_deref(), Some("large"));
    assert_eq!(node.traits, ["CUSTOM_LARGE"]);
    let capabilities = node.properties["capabilities"].as_str().unwrap_or_default();
    assert!(capabilities.split(',').any(|it| it == "cpus:24"), "{capabilities}");
    assert_eq!(lab.inventory(large).await.plugin_data["class"], "large");

    let node = lab.node(small).await;
    assert_eq!((node.resource_class, node.traits), (None, Vec::new()));
}

#[tokio::test]
async fn a_rule_stops_the_inspection_of_a_machine() {
    let lab = Lab::start().await;
    rule(&lab, &classify()).await;
    let stops = json!({
        "conditions": [{"op": "lt", "args": {"values": ["{inventory[memory][physical_mb]}", 200000]}}],
        "actions": [{"op": "fail", "args": {"msg": "too little memory"}}],
    });
    let id = rule(&lab, &stops).await;
    let mut blueprint = Machine::redfish("r1u3");
    blueprint.spec.memory_mib = 96 << 10;
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    let error = lab.provision(node, "inspect").await.fails("inspect failed").await;
    assert!(error.contains("too little memory") && error.contains(&id), "{error}");
    let class = lab.node(node).await.resource_class;
    assert_eq!(class, None, "the first rule took no effect");

    let path = format!("/v1/inspection_rules/{id}");
    lab.api().send(Method::DELETE, &path, None).await.expect("a deletion");
    lab.provision(node, "inspect").await.reaches("manageable").await;
    assert_eq!(lab.node(node).await.resource_class.as_deref(), Some("large"));
}
