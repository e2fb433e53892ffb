//! The API description agrees with the routes.

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
    assert!(routes > 30, "only {routes} routes are described");
}

#[tokio::test]
async fn every_route_has_one_row_in_the_policy() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    check_rows(&document, &api.get("/bedplate/v1/policy").await.has(200).json());
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
async fn every_answer_is_described() {
    let api = Api::start().await;
    check_answers(&api.get("/openapi.json").await.has(200).json());
}

#[tokio::test]
async fn every_reference_resolves() {
    let api = Api::start().await;
    check_references(&api.get("/openapi.json").await.has(200).text);
}

#[tokio::test]
async fn our_clients_read_only_what_is_described() {
    let api = Api::start().await;
    check_client_types(&api.get("/openapi.json").await.has(200).json(), TYPES);
}
