//! Runbooks of projects, and public ones.

use serde_json::{Value, json};

use crate::service::{Answer, Cloud, Service};

async fn create(service: &Service, name: &str, fields: Value) -> Answer {
    let step = json!({"interface": "deploy", "step": "erase_devices", "order": 1});
    let mut body = json!({"name": "wipe", "steps": [step]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    service.ask_as(name, "POST", "/v1/runbooks", &body).await
}

async fn patch(service: &Service, name: &str, path: &str, value: Value) -> Answer {
    let body = json!([{"op": "replace", "path": path, "value": value}]);
    service.ask_as(name, "PATCH", "/v1/runbooks/wipe", &body).await
}

async fn names(service: &Service, name: &str) -> Vec<String> {
    let listed = service.ask_as(name, "GET", "/v1/runbooks", &Value::Null).await.has(200).json();
    let runbooks = listed["runbooks"].as_array().unwrap().iter();
    runbooks.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_manager_creates_runbooks_for_the_own_project_only() {
    let service = Service::machines(Cloud::emulated().await).await;
    let [own, _, other] = service.projects.clone();
    let manager = "project-a-manager";
    create(&service, "project-a-member", json!({})).await.has(403);
    let refused = create(&service, manager, json!({"owner": other})).await.has(400);
    assert!(refused.text.contains("owner: only operators"), "{}", refused.text);
    let refused = create(&service, manager, json!({"public": true})).await.has(400);
    assert!(refused.text.contains("public: only operators"), "{}", refused.text);
    let made = create(&service, manager, json!({})).await.has(201).json();
    assert_eq!((&made["owner"], &made["public"]), (&json!(own), &json!(false)));

    patch(&service, manager, "/extra", json!({"a": 1})).await.has(200);
    for (path, value) in [("/owner", json!(other)), ("/public", json!(true))] {
        let refused = patch(&service, manager, path, value).await.has(403);
        assert!(refused.text.contains(&format!("{}: ", &path[1..])), "{}", refused.text);
    }
    patch(&service, "project-a-member", "/extra", json!({})).await.has(403);
    patch(&service, "project-b-manager", "/extra", json!({})).await.has(404);
    assert_eq!(names(&service, "project-a-reader").await, ["wipe"]);
    assert_eq!(names(&service, "project-b-reader").await, [""; 0]);
}

#[tokio::test]
async fn every_project_sees_a_public_runbook_and_only_operators_change_and_use_it() {
    let service = Service::machines(Cloud::emulated().await).await;
    let [owner, ..] = service.projects.clone();
    let operator = "system-member";
    create(&service, operator, json!({"public": true})).await.has(201);
    let trait_path = "/v1/runbooks/wipe/traits/CUSTOM_FAST";
    service.ask_as(operator, "PUT", trait_path, &Value::Null).await.has(204);
    let node = json!({"driver": "fake-hardware", "name": "n", "owner": owner});
    service.ask_as("system-admin", "POST", "/v1/nodes", &node).await.has(201);
    let clean = json!({"target": "clean", "runbook": "wipe"});
    let path = "/v1/nodes/n/states/provision";
    for name in ["project-a-manager", "project-b-reader"] {
        service.ask_as(name, "GET", "/v1/runbooks/wipe", &Value::Null).await.has(200);
        assert_eq!(names(&service, name).await, ["wipe"]);
        patch(&service, name, "/extra", json!({})).await.has(403);
    }
    let refused = service.ask_as("project-a-manager", "PUT", path, &clean).await.has(403);
    assert!(refused.text.contains("only operators change or use it"), "{}", refused.text);
    // An operator is refused because the node lacks the trait.
    let refused = service.ask_as(operator, "PUT", path, &clean).await.has(400);
    assert!(refused.text.contains("is not approved for node n"), "{}", refused.text);

    // A project uses its own runbook, and no other project learns that the runbook exists.
    patch(&service, operator, "/public", json!(false)).await.has(200);
    patch(&service, operator, "/owner", json!(owner)).await.has(200);
    let refused = service.ask_as("project-a-manager", "PUT", path, &clean).await.has(400);
    assert!(refused.text.contains("is not approved for node n"), "{}", refused.text);
    service.ask_as("project-a-member", "PUT", path, &clean).await.has(403);
    service.ask_as("project-b-reader", "GET", "/v1/runbooks/wipe", &Value::Null).await.has(404);
}
