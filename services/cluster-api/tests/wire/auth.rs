//! Authentication, and requests from other sites.

use std::sync::Arc;

use contract::other_sites;
use openstack_api::{Auth, Htpasswd};

use crate::api::{Api, NEWEST};

/// The user `admin` with the password `secret`, hashed by bcrypt with its least cost.
fn users() -> Auth {
    let hash = "$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy";
    Auth::HttpBasic(Arc::new(Htpasswd::parse(&format!("admin:{hash}")).unwrap()))
}

#[tokio::test]
async fn only_versions_are_public() {
    let api = Api::with(users()).await;
    let document = api.send("GET", "/openapi.json", "", "").await.has(200).json();
    let mut guarded = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if ["/", "/v1", "/openapi.json"].contains(&path.as_str()) {
            continue;
        }
        let called = path.replace(['{', '}'], "");
        for method in item.as_object().unwrap().keys() {
            let answer = api.send(&method.to_uppercase(), &called, NEWEST, "{}").await;
            assert_eq!(answer.status.as_u16(), 401, "{method} {path}: {}", answer.text);
            assert!(answer.headers.contains_key("www-authenticate"));
            guarded += 1;
        }
    }
    assert!(guarded > 25, "only {guarded} routes are guarded");
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_without_authentication() {
    let api = Api::start().await;
    other_sites::are_refused(&api, "/v1/clusters").await;
}

#[tokio::test]
async fn a_remembered_password_does_not_serve_pages_of_other_sites() {
    let api = Api::with(users()).await;
    other_sites::have_no_use_of_a_password(&api, "/v1/clusters").await;
}
