//! Access to the audit trail.

use serde_json::{Value, json};

use crate::service::{Cloud, Service};

/// The user names in the rows that this caller sees.
async fn names(service: &Service, name: &str, query: &str) -> Vec<String> {
    let path = format!("/bedplate/v1/audit?{query}");
    let shown = service.ask_as(name, "GET", &path, &Value::Null).await.has(200).json();
    let rows = shown["audit"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        rows.map(|row| row["user_name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn managers_see_the_audit_trail_of_their_project_only() {
    let service = Service::clusters(Cloud::emulated().await).await;
    let [a, _, b] = service.projects.clone();
    let body = json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
    for who in ["project-a-member", "project-b-member"] {
        service.ask_as(who, "POST", "/v1/clustertemplates", &body).await.has(201);
    }
    let is_of = |names: &[String], whose: &[&str]| {
        names.len() == whose.len()
            && whose.iter().all(|who| names.iter().any(|it| it.contains(who)))
    };
    let seen = names(&service, "project-a-manager", "").await;
    assert!(is_of(&seen, &["project-a-member"]), "{seen:?}");
    let seen = names(&service, "project-b-manager", &format!("project={b}")).await;
    assert!(is_of(&seen, &["project-b-member"]), "{seen:?}");
    let path = format!("/bedplate/v1/audit?project={b}");
    service.ask_as("project-a-manager", "GET", &path, &Value::Null).await.has(403);
    for admin in ["project-l-admin", "system-admin"] {
        let seen = names(&service, admin, "").await;
        assert!(is_of(&seen, &["project-a-member", "project-b-member"]), "{seen:?}");
        let seen = names(&service, admin, &format!("project={a}")).await;
        assert!(is_of(&seen, &["project-a-member"]), "{seen:?}");
    }
    let verify = "/bedplate/v1/audit/verify";
    service.ask_as("project-a-manager", "GET", verify, &Value::Null).await.has(403);
    let verified =
        service.ask_as("system-admin", "GET", verify, &Value::Null).await.has(200).json();
    assert_eq!((&verified["count"], &verified["broken"]), (&json!(4), &Value::Null));
}
