//! The OpenAPI document agrees with the routes.

use contract::check_client_types;
use openstack_api::conformance::{check_answers, check_references, check_routes, check_rows};

use crate::api::{Api, NEWEST};
use crate::client_types::TYPES;

#[tokio::test]
async fn every_described_route_answers() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    let routes = check_routes(&document, async |method: &str, path: &str| {
        let answer = api.send(method, path, NEWEST, "").await;
        (answer.status, answer.text)
    });
    let routes = routes.await;
    assert!(routes > 60, "only {routes} routes are described");
}

#[tokio::test]
async fn every_route_has_one_row_in_the_policy_table() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    check_rows(&document, &api.get("/bedplate/v1/policy").await.has(200).json());
}

#[tokio::test]
async fn every_body_is_described() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.json();
    let schema = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
            .clone()
    };
    let node = schema("/v1/nodes", "post");
    assert_eq!(node["required"], serde_json::json!(["driver"]));
    assert_eq!(node["properties"]["owner"]["description"], "Since API version 1.50.");
    assert_eq!(node["properties"].get("provision_state"), None);
    let power = schema("/v1/nodes/{node}/states/power", "put");
    assert_eq!(power["required"], serde_json::json!(["target"]));
}

#[tokio::test]
async fn every_answer_is_described() {
    let api = Api::start().await;
    check_answers(&api.get("/openapi.json").await.has(200).json());
}

#[tokio::test]
async fn every_reference_in_the_document_resolves() {
    let api = Api::start().await;
    check_references(&api.get("/openapi.json").await.has(200).text);
}

#[tokio::test]
async fn our_clients_read_only_what_is_described() {
    let api = Api::start().await;
    check_client_types(&api.get("/openapi.json").await.has(200).json(), TYPES);
}
