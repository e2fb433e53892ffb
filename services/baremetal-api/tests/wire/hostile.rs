//! Malformed requests to every route; see the crate `contract`.

use contract::InProcessApi;
use contract::hostile::HostileRequests;
use serde_json::{Value, json};

use crate::api::{Api, ID};

/// The id of a node that is not enrolled.
const IMPORTED: &str = "8d0f7780-8536-51ef-a55c-f18fd2f91bf8";

/// Every route that reads a body, with a body that it accepts.
fn readers() -> Vec<(&'static str, String, Value)> {
    let node = |part: &str| format!("/v1/nodes/{ID}{part}");
    vec![
        (
            "POST",
            "/v1/nodes".to_owned(),
            json!({"driver": "fake-hardware", "extra": {}, "driver_info": {}, "owner": "x"}),
        ),
        ("PATCH", node(""), json!([{"op": "add", "path": "/extra/a", "value": 1}])),
        (
            "PUT",
            node("/states/provision"),
            json!({"target": "manage", "configdrive": null, "clean_steps": null}),
        ),
        ("PUT", node("/states/power"), json!({"target": "power on", "timeout": 5})),
        ("PUT", node("/maintenance"), json!({"reason": "x"})),
        (
            "PUT",
            node("/management/boot_device"),
            json!({"boot_device": "pxe", "persistent": false}),
        ),
        ("PUT", node("/traits"), json!({"traits": ["CUSTOM_A"]})),
        ("POST", node("/vifs"), json!({"id": "x"})),
        (
            "POST",
            "/v1/ports".to_owned(),
            json!({"node_uuid": ID, "address": "52:54:00:00:00:01", "extra": {}}),
        ),
        ("PUT", format!("/bedplate/v1/nodes/{ID}/identify"), json!({"on": true})),
        (
            "PUT",
            format!("/bedplate/v1/import/nodes/{IMPORTED}"),
            json!({
                "node": {"uuid": IMPORTED, "driver": "fake-hardware", "provision_state": "active"},
                "ports": [], "portgroups": [], "volume_connectors": [], "volume_targets": [],
                "allocation": null, "inventory": null,
            }),
        ),
    ]
}

/// Runs a check on an API with one node.
async fn check(check: impl AsyncFn(&HostileRequests)) {
    let api = Api::start().await;
    api.enroll("").await;
    check(&HostileRequests {
        api: InProcessApi::clone(&api),
        readers: readers(),
        largest_body: 16 << 20,
        ignore_unknown_fields: &["/vifs"],
        any_type: &["value", "configdrive"],
        query_names: "(limit|marker|sort_key|sort_dir|fields|detail|owner|driver|fault|shard|type|node|address|parent_node|zz)",
    })
    .await;
}

contract::hostile_tests!(check);
