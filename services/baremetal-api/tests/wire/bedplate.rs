//! Wire tests of explanations, counts, discoveries and BMC functions.

use baremetal_core::{Failure, Reason, State};
use serde_json::json;

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn a_node_is_explained() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    api.get("/bedplate/v1/nodes/n1/explain").await.has(200).is(&format!(
        r#"{{
            "uuid": "{ID}", "name": "n1", "place": null, "provision_state": "enroll", "target_provision_state": null,
            "power_state": null, "since": "2026-01-02T03:04:05.000006+00:00",
            "summary": "the node is \"enroll\": the BMC has not been verified yet",
            "task": null, "failure": null, "hypervisor": null,
            "last_seen": {{"bmc": null, "dhcp": null, "tftp": null, "http": null, "agent": null}},
            "next": "request \"manage\" to verify the BMC"
        }}"#
    ));
    let manage = r#"{"target": "manage"}"#;
    api.send("PUT", "/v1/nodes/n1/states/provision", NEWEST, manage).await.has(202);
    let reported = api.get("/bedplate/v1/nodes/n1/explain").await.has(200).json();
    assert_eq!(
        reported["task"],
        serde_json::json!({
            "what": "verifying the BMC", "number": 1, "of": 1, "since": "2026-01-02T03:04:05.000006+00:00", "progress": null,
        })
    );
    api.get("/bedplate/v1/nodes/zz/explain").await.refuses(404, "Node zz could not be found.");
}

#[tokio::test]
async fn nodes_are_counted_and_failed_ones_are_named() {
    let api = Api::start().await;
    let none = r#"{"count": 0, "nodes": []}"#;
    api.get("/bedplate/v1/counts")
        .await
        .has(200)
        .is(&format!(r#"{{"total": 0, "states": [], "under_way": {none}, "stuck": {none}}}"#));
    api.enroll(r#", "name": "n1""#).await;
    api.edit(|node| {
        node.provision_state = State::CleanFailed;
        node.failure = Some(Failure::new(Reason::StepFailed, "the disk is full"));
    })
    .await;
    let reported = api.get("/bedplate/v1/counts").await.has(200).json();
    assert_eq!(reported["states"], json!([{"provision_state": "clean failed", "count": 1}]));
    let stuck = &reported["stuck"];
    assert_eq!((&stuck["count"], &stuck["nodes"][0]["name"]), (&json!(1), &json!("n1")));
    let why = stuck["nodes"][0]["last_error"].as_str().unwrap();
    assert!(why.contains("the disk is full"), "{why}");
    api.edit(|node| node.failure = None).await;
    let power = r#"{"target": "power on"}"#;
    api.send("PUT", "/v1/nodes/n1/states/power", NEWEST, power).await.has(202);
    let reported = api.get("/bedplate/v1/counts").await.has(200).json();
    let counts = [&reported["total"], &reported["under_way"]["count"], &reported["stuck"]["count"]];
    assert_eq!(counts, [&json!(1), &json!(1), &json!(0)]);
    assert_eq!(reported["under_way"]["nodes"][0]["uuid"], ID);
}

#[tokio::test]
async fn a_rack_whose_record_cannot_be_read_is_named_and_can_be_deleted() {
    let api = Api::start().await;
    api.store.insert_rack("r1", &json!({"goal": {"reach": "moon"}})).await.unwrap();
    let why = "cannot read the record of rack r1; delete the rack and enroll it again";
    api.get("/bedplate/v1/racks").await.refuses(500, why);
    api.get("/bedplate/v1/racks/r1").await.refuses(500, why);
    api.send("DELETE", "/bedplate/v1/racks/r1/up", NEWEST, "").await.refuses(500, why);
    api.send("DELETE", "/bedplate/v1/racks/r1", NEWEST, "").await.has(204);
    api.get("/bedplate/v1/racks").await.is(r#"{"racks": []}"#);
}

#[tokio::test]
async fn a_function_that_the_bmc_lacks_is_refused() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    api.edit(|node| node.driver = baremetal_core::Driver::Redfish).await;
    for path in ["sensors", "event-log"] {
        let refused = api.get(&format!("/bedplate/v1/nodes/n1/{path}")).await.has(400);
        assert!(refused.text.contains("redfish_address"), "{}", refused.text);
    }
    api.get("/bedplate/v1/nodes/n1/event-log?limit=0")
        .await
        .refuses(400, "limit: must be from 1 to 1000");
    let refused = api.send("PUT", "/bedplate/v1/nodes/n1/identify", NEWEST, r#"{"on": 1}"#).await;
    assert!(refused.has(400).text.contains("on: invalid type: integer `1`, expected a boolean"));
}
