//! Whether an OpenAPI document is whole, and agrees with the routes and with the table of who may use them.

use http::StatusCode;
use serde_json::{Value, json};

/// Fails unless what is described answers, and nothing else does, to each method of each path; how many routes there are. `ask` tells the
/// status and the text of an answer.
///
/// # Panics
///
/// When they disagree.
pub async fn check_routes(
    document: &Value,
    ask: impl AsyncFn(&str, &str) -> (StatusCode, String),
) -> usize {
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let described = item.as_object().unwrap();
        let called = path.replace(['{', '}'], "");
        for method in ["get", "post", "put", "patch", "delete"] {
            let (status, text) = ask(&method.to_uppercase(), &called).await;
            let unknown = text.contains("there is no such path");
            let refused = status == StatusCode::METHOD_NOT_ALLOWED;
            let is_described = described.contains_key(method);
            assert_eq!(is_described, !unknown && !refused, "{method} {path}: {status} {text}");
            routes += usize::from(is_described);
        }
    }
    routes
}

/// Fails unless each route has one row in the table that `/bedplate/v1/policy` tells.
///
/// # Panics
///
/// When one has none, or there is a row without a route.
pub fn check_rows(document: &Value, policy: &Value) {
    let mut rows: Vec<(String, String, bool)> = Vec::new();
    for row in policy["policy"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let public = row["public"].as_bool().unwrap();
        assert_eq!(row.get("cloud").is_none(), public, "{row}");
        rows.push((text("path"), text("method").to_lowercase(), public));
    }
    rows.sort();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let public = operation["security"] == json!([{}]);
            routes.push((path.clone(), method.clone(), public));
        }
    }
    routes.sort();
    assert_eq!(rows, routes);
}

/// Fails unless it is said of every answer what it is like. See [`crate::Handle::tells`].
///
/// # Panics
///
/// When it is not.
pub fn check_answers(document: &Value) {
    let mut wrong = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let refuses = status.starts_with(['4', '5']);
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

/// Fails unless all that the document refers to is in it.
///
/// # Panics
///
/// When it is not.
pub fn check_references(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let lost: Vec<&str> = text
        .split("\"$ref\":\"#")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|pointer| document.pointer(pointer).is_none())
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
}
