//! The API description agrees with the routes.

use contract::{check_client_types, openapi};

use crate::api::Api;
use crate::client_types::TYPES;

#[tokio::test]
async fn the_document_agrees_with_the_routes() {
    openapi::agrees_with_routes(&*Api::start().await, 30).await;
}

#[tokio::test]
async fn the_fields_of_a_body_are_described() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.json();
    let schema = &document["paths"]["/v1/clusters"]["post"]["requestBody"]["content"]["application/json"]
        ["schema"];
    assert_eq!(schema["required"], serde_json::json!(["cluster_template_id"]));
    assert!(schema["properties"]["master_count"].is_object());
}

#[tokio::test]
async fn a_stream_is_described_beside_its_list() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.json();
    let events = &document["paths"]["/bedplate/v1/clusters/{cluster}/events"]["get"];
    let kinds: Vec<&String> =
        events["responses"]["200"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(kinds, ["application/json", "text/event-stream"]);
    assert!(events["responses"]["503"].is_object());
    let mut parameters = events["parameters"].as_array().unwrap().iter();
    let last = parameters.find(|it| it["name"] == "Last-Event-ID").unwrap();
    assert_eq!(last["in"], "header");
}

#[tokio::test]
async fn our_clients_read_only_what_is_described() {
    let api = Api::start().await;
    check_client_types(&api.get("/openapi.json").await.has(200).json(), TYPES);
}
