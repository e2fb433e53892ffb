//! Wire tests of chassis.

use crate::api::{Api, ID, NEWEST};

const CHASSIS: &str = "5b1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";

async fn with_chassis() -> Api {
    let api = Api::start().await;
    let body = format!(r#"{{"uuid": "{CHASSIS}", "description": "row 3", "extra": {{"a": 1}}}}"#);
    api.send("POST", "/v1/chassis", NEWEST, &body).await.has(201);
    api
}

fn links(part: &str) -> String {
    format!(
        r#"[{{"href": "http://api:6385/v1/chassis/{CHASSIS}{part}", "rel": "self"}},
            {{"href": "http://api:6385/chassis/{CHASSIS}{part}", "rel": "bookmark"}}]"#
    )
}

#[tokio::test]
async fn a_chassis_is_shown_listed_and_changed() {
    let api = with_chassis().await;
    let (path, links, nodes) = (format!("/v1/chassis/{CHASSIS}"), links(""), links("/nodes"));
    let at = "2026-01-02T03:04:05.000006+00:00";
    let shown = |description: &str, updated: &str| {
        format!(
            r#"{{"uuid": "{CHASSIS}", "description": {description}, "extra": {{"a": 1}},
                "nodes": [{nodes}], "created_at": "{at}", "updated_at": {updated}, "links": {links}}}"#
        )
    };
    api.get(&path).await.has(200).is(&shown(r#""row 3""#, "null"));
    let brief = format!(
        r#"{{"chassis": [{{"uuid": "{CHASSIS}", "description": "row 3", "links": {links}}}]}}"#
    );
    api.get("/v1/chassis").await.has(200).is(&brief);
    let detail = format!(r#"{{"chassis": [{}]}}"#, shown(r#""row 3""#, "null"));
    api.get("/v1/chassis/detail").await.has(200).is(&detail);
    let patch = r#"[{"op": "remove", "path": "/description"}]"#;
    let changed = shown("null", &format!("\"{at}\""));
    api.send("PATCH", &path, NEWEST, patch).await.has(200).is(&changed);
    api.get(&path).await.has(200).is(&changed);
}

#[tokio::test]
async fn a_chassis_needs_no_body() {
    let api = Api::start().await;
    let made = api.send("POST", "/v1/chassis", NEWEST, "").await.has(201).json();
    assert_eq!(made["extra"], serde_json::json!({}));
}

#[tokio::test]
async fn a_chassis_with_nodes_is_kept() {
    let api = with_chassis().await;
    let path = format!("/v1/chassis/{CHASSIS}");
    api.enroll(&format!(r#", "chassis_uuid": "{CHASSIS}""#)).await;
    let nodes = api.get(&format!("{path}/nodes")).await.has(200).json();
    assert_eq!(nodes["nodes"][0]["uuid"], ID);
    let listed = api.get(&format!("/v1/nodes?chassis_uuid={CHASSIS}")).await.has(200).json();
    assert_eq!(listed["nodes"][0]["uuid"], ID);
    let why = format!("chassis_uuid: Chassis {ID} could not be found.");
    api.get(&format!("/v1/nodes?chassis_uuid={ID}")).await.refuses(404, &why);
    api.send("DELETE", &path, NEWEST, "")
        .await
        .refuses(400, &format!("Chassis {CHASSIS} has nodes: move or delete them first"));
    let leave = r#"[{"op": "remove", "path": "/chassis_uuid"}]"#;
    api.send("PATCH", &format!("/v1/nodes/{ID}"), "1.24", leave).await.has(406);
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, leave).await.has(200);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    api.get(&path).await.has(404);
}

#[tokio::test]
async fn a_node_in_a_chassis_that_does_not_exist_is_refused() {
    let api = Api::start().await;
    let body = format!(r#"{{"driver": "fake-hardware", "chassis_uuid": "{CHASSIS}"}}"#);
    let why = format!("chassis_uuid: Chassis {CHASSIS} could not be found.");
    api.send("POST", "/v1/nodes", NEWEST, &body).await.refuses(400, &why);
    api.enroll("").await;
    let join = format!(r#"[{{"op": "add", "path": "/chassis_uuid", "value": "{CHASSIS}"}}]"#);
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, &join).await.refuses(400, &why);
}
