//! An inspection with rules: baremetald is killed at each of its effects and records, and each rule is applied exactly once.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine};
use reqwest::Method;
use serde_json::json;

use super::{INSPECTION, outlived, part, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspection_rules_are_applied_once_despite_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = lab.rack(Machine::redfish("r1u6").without_tls()).await;
    let node = lab.manageable(&machine).await;
    let address = machine.spec().nics[0].mac.to_string();
    // Each of these lists grows with every application of the rule.
    let rule = json!({"actions": [
        {"op": "extend-attribute", "args": {"path": "extra/applied", "value": "once"}},
        {"op": "extend-plugin-data", "args": {"path": "applied", "value": "once"}},
        {"op": "extend-port-attribute", "args": {"port_id": address, "path": "extra/applied", "value": "once"}},
    ]});
    lab.api().send(Method::POST, "/v1/inspection_rules", Some(&rule)).await.expect("a rule");

    let inspection = part("inspect", INSPECTION, &[On, ForceOff], &[]);
    let points = outlived(&lab, node, &machine, &inspection, (1, |_| false)).await;
    // A repeated report of the agent can reach its own point first, so one of the two points at the rules may be missing.
    assert!(points.iter().any(|it| it.contains("update_node_and_inspection")), "{points:#?}");
    let once = json!(["once"]);
    assert_eq!(lab.node(node).await.extra["applied"], once, "{points:#?}");
    assert_eq!(lab.inventory(node).await.plugin_data["applied"], once, "{points:#?}");
    assert_eq!(lab.ports(node).await[0].extra["applied"], once, "{points:#?}");
}
