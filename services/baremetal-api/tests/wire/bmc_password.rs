//! Wire tests of new passwords of BMC accounts.

use serde_json::json;

use crate::api::{Api, ID, NEWEST};

const OTHER: &str = "9c2f0b1e-3b57-4d6f-8f0a-5b7e1f0c2d3e";

fn path() -> String {
    format!("/bedplate/v1/nodes/{ID}/rotate-bmc-password")
}

/// An API with a Redfish node whose account has a name.
async fn with_node() -> Api {
    let api = Api::start().await;
    let info = json!({
        "redfish_address": "https://192.0.2.9", "redfish_username": "root", "redfish_password": "hunter2",
    });
    let node = json!({"uuid": ID, "driver": "redfish", "driver_info": info});
    api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.has(201);
    api
}

#[tokio::test]
async fn a_request_is_recorded_and_locks_the_node() {
    let api = with_node().await;
    let asked = api.send("POST", &path(), NEWEST, "").await.has(202);
    assert_eq!(asked.text, "");
    let again = api.send("POST", &path(), NEWEST, "").await.has(409);
    assert!(again.text.contains("try again when it is done"), "{}", again.text);
    let power = json!({"target": "power on"}).to_string();
    let power = api.send("PUT", &format!("/v1/nodes/{ID}/states/power"), NEWEST, &power).await;
    power.has(409);
    let moved = json!([{"op": "add", "path": "/driver_info/redfish_address", "value": "https://192.0.2.8"}]);
    let node = format!("/v1/nodes/{ID}");
    let moved = api.send("PATCH", &node, NEWEST, &moved.to_string()).await.has(409);
    assert!(moved.text.contains("password of its BMC account"), "{}", moved.text);
    let name = json!([{"op": "add", "path": "/extra/note", "value": "x"}]);
    api.send("PATCH", &node, NEWEST, &name.to_string()).await.has(200);
}

#[tokio::test]
async fn a_bmc_of_several_nodes_is_refused_by_their_names() {
    let api = with_node().await;
    let part = json!({
        "uuid": OTHER, "name": "blade-2", "driver": "redfish", "parent_node": ID,
        "driver_info": {"redfish_address": "https://192.0.2.9"},
    });
    api.send("POST", "/v1/nodes", NEWEST, &part.to_string()).await.has(201);
    let refused = api.send("POST", &path(), NEWEST, "").await.has(409);
    assert!(refused.text.contains("would be wrong: blade-2"), "{}", refused.text);
}

#[tokio::test]
async fn a_node_without_an_account_is_refused() {
    let api = Api::start().await;
    api.enroll("").await;
    let why = "driver: fake-hardware logs in to no BMC account";
    api.send("POST", &path(), NEWEST, "").await.refuses(400, why);
}
