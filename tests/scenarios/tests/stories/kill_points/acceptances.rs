//! Acceptances of discovered machines: baremetald is killed at each of their records, and each machine becomes one node.

use std::cell::Cell;

use api_client::baremetald::{History, Node, Port};
use lab::{Lab, Machine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use super::settings;
use crate::accepted::{BY_RULES, acceptance, rule};
use crate::unknown::{appears, discovered};

/// Waits until a node is listed and no discovery.
async fn is_accepted(lab: &Lab) {
    let is_one = |list: &Value| (list["nodes"].as_array()?.len() == 1).then_some(());
    lab.api().until("/v1/nodes", "one node", is_one).await;
    let is_empty = |list: &Value| (list["discoveries"] == json!([])).then_some(());
    lab.api().until("/bedplate/v1/discoveries", "no discovery", is_empty).await;
}

async fn has_one_of_each(lab: &Lab, story: &[String]) {
    let nodes = lab.api().list::<Node>("/v1/nodes").await;
    assert_eq!(nodes.len(), 1, "{story:#?}");
    assert_eq!(lab.api().list::<Port>("/v1/ports").await.len(), 1, "{story:#?}");
    let node = nodes[0].uuid.as_deref().expect("an id");
    let history: History = lab.api().get(&format!("/v1/nodes/{node}/history")).await;
    assert_eq!(history.history.len(), 1, "{story:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acceptance_by_a_person_survives_kills() {
    let lab = Lab::with_mortal(Settings { unknown_machines: "discover", ..settings() }).await;
    let machine = appears(&lab, Machine::redfish("stranger").without_tls()).await;
    discovered(&lab, &machine, |it| !it.data.is_null()).await;
    let body = json!({"name": "r1u1", "driver_info": machine.driver_info()});
    let ask = async || {
        let accepted = lab.api().send(Method::POST, &acceptance(&machine), Some(&body)).await;
        accepted.expect("an acceptance");
    };
    let done = async || is_accepted(&lab).await;
    let points = lab.kill_at_every_point(1, |_| false, ask, done).await;
    assert!(points.iter().any(|it| it.contains("accept_discovery")), "{points:#?}");
    has_one_of_each(&lab, &points).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acceptance_by_rules_survives_kills() {
    let more = BY_RULES.to_owned();
    let settings = Settings { unknown_machines: "discover", more, ..settings() };
    let lab = Lab::with_mortal(settings).await;
    let machine = lab.rack(Machine::redfish("stranger").without_tls()).await;
    rule(&lab, &machine).await;
    let is_on = Cell::new(false);
    let ask = async || {
        if !is_on.replace(true) {
            machine.chassis().push_power_button();
        }
    };
    let done = async || is_accepted(&lab).await;
    // A machine whose DHCP requests or boot script are lost does not report.
    let spares =
        |point: &str| !point.contains("save_discovery") && !point.contains("accept_discovery");
    let points = lab.kill_at_every_point(1, spares, ask, done).await;
    assert!(points.iter().any(|it| it.contains("accept_discovery")), "{points:#?}");
    has_one_of_each(&lab, &points).await;
}
