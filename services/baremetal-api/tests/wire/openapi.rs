//! The description agrees with the routes.

use crate::api::{Api, NEWEST};

#[tokio::test]
async fn every_described_route_answers() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let described = item.as_object().unwrap();
        let called = path.replace(['{', '}'], "");
        for method in ["get", "post", "put", "patch", "delete"] {
            let answer = api.send(&method.to_uppercase(), &called, NEWEST, "").await;
            let unknown = answer.text.contains("there is no such path");
            let refused = answer.status == 405;
            assert_eq!(
                described.contains_key(method),
                !unknown && !refused,
                "{method} {path}: {} {}",
                answer.status,
                answer.text
            );
            routes += usize::from(described.contains_key(method));
        }
    }
    assert!(routes > 60, "only {routes} routes are described");
}

#[tokio::test]
async fn every_route_has_one_row_in_the_table_of_who_may_use_it() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    let table = api.get("/bedplate/v1/policy").await.has(200).json();
    let mut rows: Vec<(String, String, bool)> = Vec::new();
    for row in table["policy"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let public = row["public"].as_bool().unwrap();
        assert_eq!(row.get("cloud").is_none(), public, "{row}");
        rows.push((text("path"), text("method").to_lowercase(), public));
    }
    rows.sort();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let public = operation["security"] == serde_json::json!([{}]);
            routes.push((path.clone(), method.clone(), public));
        }
    }
    routes.sort();
    assert_eq!(rows, routes);
}

#[tokio::test]
async fn what_a_body_holds_is_described() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.json();
    let schema = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
            .clone()
    };
    let node = schema("/v1/nodes", "post");
    assert_eq!(node["required"], serde_json::json!(["driver"]));
    assert_eq!(node["properties"]["owner"]["description"], "Came with version 1.50.");
    assert_eq!(node["properties"].get("provision_state"), None);
    let power = schema("/v1/nodes/{node}/states/power", "put");
    assert_eq!(power["required"], serde_json::json!(["target"]));
}

/// See `openstack_api::Handle::tells`.
#[tokio::test]
async fn every_answer_is_described() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200).json();
    let mut wrong = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let refuses = !status.starts_with('2');
                let refusal = &answer["content"]["application/json"]["schema"]["$ref"];
                if answer["description"] == "Undescribed."
                    || refuses && refusal != "#/components/schemas/Refusal"
                {
                    wrong.push(format!("{method} {path}: {status}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "say what these answer, by Handle::tells: {wrong:#?}");
}

#[tokio::test]
async fn what_is_referred_to_is_there() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.has(200);
    let lost: Vec<&str> = document
        .text
        .split("\"$ref\":\"#")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|pointer| document.json().pointer(pointer).is_none())
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
}
