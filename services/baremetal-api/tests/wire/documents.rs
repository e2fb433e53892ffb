//! The size limit of stored documents holds for every request that can make a document grow.

use baremetal_core::State;
use hardware::PowerState;
use openstack_api::{Auth, Limits};
use serde_json::json;

use crate::api::{Answer, Api, ID, NEWEST};

/// The limit in these tests, in bytes of JSON.
const MOST: usize = 2000;

async fn bounded() -> Api {
    Api::within(Auth::None, toml::from_str::<Limits>("document = 2000").unwrap()).await
}

fn too_large(answer: Answer, field: &str, bytes: usize, most: usize) {
    let why = format!(
        "{field}: the document would have {bytes} bytes; the limit is {most} (api.limits.document)"
    );
    answer.refuses(400, &why);
}

async fn patch(api: &Api, path: &str, patch: &serde_json::Value) -> Answer {
    api.send("PATCH", path, NEWEST, &patch.to_string()).await
}

#[tokio::test]
async fn a_new_document_is_limited_in_size() {
    let api = bounded().await;
    let small = "x".repeat(1900);
    let large = "x".repeat(MOST);
    let node = |notes: &str| json!({"driver": "fake-hardware", "extra": {"a": notes}}).to_string();
    too_large(api.send("POST", "/v1/nodes", NEWEST, &node(&large)).await, "extra", 2024, MOST);
    assert_eq!(api.get("/v1/nodes").await.json()["nodes"], json!([]), "nothing was changed");
    api.send("POST", "/v1/nodes", NEWEST, &node(&small)).await.has(201);

    let wish = |notes: &str| json!({"resource_class": "gpu", "extra": {"a": notes}}).to_string();
    too_large(
        api.send("POST", "/v1/allocations", NEWEST, &wish(&large)).await,
        "extra",
        2012,
        MOST,
    );
    api.send("POST", "/v1/allocations", NEWEST, &wish(&small)).await.has(201);

    api.enroll("").await;
    let port = |notes: &str| {
        json!({"address": "52:54:00:00:00:01", "node_uuid": ID, "extra": {"a": notes}}).to_string()
    };
    too_large(api.send("POST", "/v1/ports", NEWEST, &port(&large)).await, "extra", 2014, MOST);
    api.send("POST", "/v1/ports", NEWEST, &port(&small)).await.has(201);
}

#[tokio::test]
async fn every_kind_of_resource_is_limited_in_size() {
    let api = bounded().await;
    api.enroll("").await;
    api.edit(|node| node.power_state = Some(PowerState::Off)).await;
    let large = "x".repeat(MOST);
    for (path, fields) in [
        ("/v1/chassis", json!({})),
        ("/v1/portgroups", json!({"node_uuid": ID})),
        ("/v1/volume/connectors", json!({"node_uuid": ID, "type": "iqn", "connector_id": "a"})),
        (
            "/v1/volume/targets",
            json!({"node_uuid": ID, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}),
        ),
        (
            "/v1/deploy_templates",
            json!({"name": "CUSTOM_A", "steps": [
                {"interface": "bios", "step": "apply", "args": {}, "priority": 85},
            ]}),
        ),
        (
            "/v1/runbooks",
            json!({"name": "CUSTOM_A", "steps": [
                {"interface": "bios", "step": "apply", "args": {}, "order": 1},
            ]}),
        ),
    ] {
        let with = |notes: &str| {
            let mut body = fields.clone();
            body["extra"] = json!({"a": notes});
            body.to_string()
        };
        let refused = |answer: Answer| {
            let text = answer.has(400).text;
            assert!(text.contains("the document would have"), "{path}: {text}");
        };
        refused(api.send("POST", path, NEWEST, &with(&large)).await);
        let made = api.send("POST", path, NEWEST, &with("")).await.has(201).json();
        let one = format!("{path}/{}", made["uuid"].as_str().unwrap());
        let more = json!([{"op": "add", "path": "/extra/b", "value": large}]);
        refused(patch(&api, &one, &more).await);
    }
}

#[tokio::test]
async fn small_patches_do_not_add_up_to_a_large_document() {
    let api = bounded().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}");
    let third = "x".repeat(900);
    let add = |path: &str| json!([{"op": "add", "path": path, "value": third}]);
    patch(&api, &path, &add("/extra/a")).await.has(200);
    patch(&api, &path, &add("/properties/a")).await.has(200);
    too_large(patch(&api, &path, &add("/extra/b")).await, "extra", 2737, MOST);
    let node = api.get(&path).await.json();
    assert_eq!(node["extra"], json!({"a": third}), "nothing was changed");
    let less = json!([{"op": "remove", "path": "/properties/a"}]);
    patch(&api, &path, &less).await.has(200);
    patch(&api, &path, &add("/extra/b")).await.has(200);
}

#[tokio::test]
async fn the_reason_of_maintenance_counts_as_every_other_field() {
    let api = bounded().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/maintenance");
    let begin = async |reason: &str| {
        api.send("PUT", &path, NEWEST, &json!({"reason": reason}).to_string()).await
    };
    let refused = begin(&"x".repeat(MOST)).await.has(400).text;
    assert!(refused.contains("maintenance_reason: the document would have"), "{refused}");
    let node = api.get(&format!("/v1/nodes/{ID}")).await.json();
    assert_eq!(node["maintenance"], json!(false), "nothing was changed");
    begin(&"x".repeat(1500)).await.has(202);
    let extra = json!([{"op": "add", "path": "/extra/a", "value": "x".repeat(600)}]);
    let grown = patch(&api, &format!("/v1/nodes/{ID}"), &extra).await.has(400).text;
    assert!(grown.contains("maintenance_reason: the document would have"), "{grown}");
}

#[tokio::test]
async fn a_stored_document_over_the_limit_can_change_but_not_grow() {
    let api = bounded().await;
    api.enroll("").await;
    api.edit(|node| {
        node.extra.insert("a".to_owned(), json!("x".repeat(3000)));
    })
    .await;
    let path = format!("/v1/nodes/{ID}");
    api.send("PUT", &format!("{path}/maintenance"), NEWEST, "").await.has(202);
    let more = json!([{"op": "add", "path": "/extra/b", "value": 1}]);
    too_large(patch(&api, &path, &more).await, "extra", 3030, MOST);
    let less = json!([{"op": "replace", "path": "/extra/a", "value": "x".repeat(2500)}]);
    patch(&api, &path, &less).await.has(200);
}

#[tokio::test]
async fn a_config_drive_has_a_limit_of_its_own() {
    let api = bounded().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}");
    let drive = |length: usize| json!([{"op": "add", "path": "/instance_info/configdrive", "value": "A".repeat(length)}]);
    let field = "instance_info/configdrive";
    too_large(patch(&api, &path, &drive(16 * MOST)).await, field, 32_002, 16 * MOST);
    patch(&api, &path, &drive(16 * MOST - 100)).await.has(200);
    let more = json!([{"op": "add", "path": "/extra/b", "value": 1}]);
    patch(&api, &path, &more).await.has(200);
}

#[tokio::test]
async fn requested_clean_steps_count_as_every_other_field() {
    let api = bounded().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Manageable).await;
    let clean = async |notes: &str| {
        let step = json!({"interface": "raid", "step": "a", "args": {"a": notes}});
        let body = json!({"target": "clean", "clean_steps": [step]});
        let path = format!("/v1/nodes/{ID}/states/provision");
        api.send("PUT", &path, NEWEST, &body.to_string()).await
    };
    too_large(clean(&"x".repeat(MOST)).await, "clean_steps", 2067, MOST);
    clean(&"x".repeat(1800)).await.has(202);
}
