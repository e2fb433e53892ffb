//! Checks that an OpenAPI document is complete and agrees with the routes and with the policy table.

use http::StatusCode;
use serde_json::{Value, json};

use super::resolve;

/// Checks that exactly the described methods of each path are answered, and returns how many there are. `ask` sends a request and returns
/// the status and the text of the answer.
///
/// # Panics
///
/// Panics if the document and the routes disagree.
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
            let unknown = text.contains("path not found");
            let refused = status == StatusCode::METHOD_NOT_ALLOWED
                || text.contains("method not allowed for this path");
            let is_described = described.contains_key(method);
            assert_eq!(is_described, !unknown && !refused, "{method} {path}: {status} {text}");
            routes += usize::from(is_described);
        }
    }
    routes
}

/// Checks that each route has exactly one row in the table of `/bedplate/v1/policy`.
///
/// # Panics
///
/// Panics if a route has no row, or a row has no route.
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

/// Checks that every answer is described; see [`crate::Route::returns`].
///
/// # Panics
///
/// Panics if an answer is not described.
pub fn check_answers(document: &Value) {
    let mut wrong = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let answer = resolve(document, answer);
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

/// Checks that every `$ref` of the document points to an existing part.
///
/// # Panics
///
/// Panics if a `$ref` points to nothing.
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
