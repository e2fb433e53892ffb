//! The OpenAPI document agrees with the routes.

use contract::{check_client_types, openapi};

use crate::api::Api;
use crate::client_types::TYPES;

#[tokio::test]
async fn the_document_agrees_with_the_routes() {
    openapi::agrees_with_routes(&*Api::start().await, 60).await;
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
async fn our_clients_read_only_what_is_described() {
    let api = Api::start().await;
    check_client_types(&api.get("/openapi.json").await.has(200).json(), TYPES);
}
