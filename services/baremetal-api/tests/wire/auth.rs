//! Wire tests of authentication.

use std::sync::Arc;

use axum::body::Body;
use baremetal_core::{HistoryEntry, State};
use contract::other_sites;
use http::Request;
use openstack_api::{Auth, Htpasswd};
use serde_json::Value;

use crate::api::{Answer, Api, ID, NEWEST};

/// `admin:secret`, hashed with the lowest bcrypt cost.
fn users() -> Auth {
    let file = format!("admin:{}\n", bcrypt::hash("secret", 4).unwrap());
    Auth::HttpBasic(Arc::new(Htpasswd::parse(&file).unwrap()))
}

#[tokio::test]
async fn only_the_version_documents_and_the_description_are_public() {
    let api = Api::with(users()).await;
    let document = api.get("/openapi.json").await.has(200).json();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().unwrap().keys() {
            let answer = api.send(&method.to_uppercase(), &path, "1.115", "").await;
            let public = ["/", "/v1", "/v1/", "/openapi.json"].contains(&path.as_str());
            assert_eq!(answer.status.as_u16(), if public { 200 } else { 401 }, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn all_other_routes_need_a_password() {
    let api = Api::with(users()).await;
    let refused = api.get("/v1/nodes").await.has(401);
    assert_eq!(refused.headers["www-authenticate"], "Basic realm=\"Baremetal API\"");
    assert_eq!(
        refused.text,
        r#"{"error_message":"{\"code\":401,\"description\":\"user name and password are required\",\"title\":\"Unauthorized\"}"}"#
    );
    // The base64 of admin:secret, then of admin:wrong.
    for (credentials, status) in [("YWRtaW46c2VjcmV0", 200), ("YWRtaW46d3Jvbmc=", 401)] {
        let request = Request::get("/v1/nodes")
            .header("host", "api:6385")
            .header("authorization", format!("Basic {credentials}"));
        api.raw(request.body(Body::empty()).unwrap()).await.has(status);
    }
}

/// Sends a request as `admin:secret`.
async fn as_admin(api: &Api, method: &str, path: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "api:6385")
        .header("x-openstack-ironic-api-version", NEWEST)
        .header("content-type", "application/json")
        .header("authorization", "Basic YWRtaW46c2VjcmV0");
    api.raw(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn a_nodes_history_names_the_user() {
    let api = Api::with(users()).await;
    let node = format!(r#"{{"uuid": "{ID}", "driver": "fake-hardware"}}"#);
    as_admin(&api, "POST", "/v1/nodes", &node).await.has(201);
    let states = format!("/v1/nodes/{ID}/states/provision");
    as_admin(&api, "PUT", &states, r#"{"target": "manage"}"#).await.has(202);
    // An event of the service, which has no user.
    api.edit(|node| node.provision_state = State::Manageable).await;
    let found = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let done = HistoryEntry::changed(&found, &found, "done".to_owned(), found.created_at);
    api.store.update_node(&found, &[done]).await.unwrap();
    let lease = format!("/bedplate/v1/nodes/{ID}/lease");
    let lent = r#"{"lessee": "lab", "for": "1d"}"#;
    as_admin(&api, "POST", &lease, lent).await.has(200);

    let path = format!("/v1/nodes/{ID}/history?detail=true");
    let reported = as_admin(&api, "GET", &path, "").await.has(200).json();
    let reported = reported["history"].as_array().unwrap();
    let users: Vec<_> = reported.iter().map(|it| (&it["event_type"], &it["user"])).collect();
    let [verifying, manageable] = ["verifying", "manageable"].map(Value::from);
    let (admin, nobody) = (Value::from("admin"), Value::Null);
    let want = [(&verifying, &admin), (&manageable, &nobody), (&manageable, &admin)];
    assert_eq!(users, want);
    let id = reported[0]["uuid"].as_str().unwrap();
    let one = as_admin(&api, "GET", &format!("/v1/nodes/{ID}/history/{id}"), "").await;
    assert_eq!(one.has(200).json()["user"], "admin");
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_without_authentication() {
    let api = Api::start().await;
    other_sites::are_refused(&api, "/v1/nodes").await;
}

#[tokio::test]
async fn a_remembered_password_does_not_serve_pages_of_other_sites() {
    let api = Api::with(users()).await;
    other_sites::have_no_use_of_a_password(&api, "/v1/nodes").await;
}
