//! Who may call.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use openstack_api::{Auth, Htpasswd};

use crate::api::Api;

/// `admin:secret`, hashed by bcrypt with its least cost.
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
async fn a_password_opens_the_rest() {
    let api = Api::with(users()).await;
    let refused = api.get("/v1/nodes").await.has(401);
    assert_eq!(refused.headers["www-authenticate"], "Basic realm=\"Baremetal API\"");
    assert_eq!(
        refused.text,
        r#"{"error_message":"{\"code\":401,\"description\":\"user name and password are required\",\"title\":\"Unauthorized\"}"}"#
    );
    // admin:secret, then admin:wrong.
    for (credentials, status) in [("YWRtaW46c2VjcmV0", 200), ("YWRtaW46d3Jvbmc=", 401)] {
        let request = Request::get("/v1/nodes")
            .header("host", "api:6385")
            .header("authorization", format!("Basic {credentials}"));
        api.raw(request.body(Body::empty()).unwrap()).await.has(status);
    }
}
