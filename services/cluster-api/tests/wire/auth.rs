//! Authentication, and requests from other sites.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use openstack_api::{Auth, Htpasswd};

use crate::api::{Answer, Api, NEWEST};

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

/// The response to a request with these headers and without a body.
async fn answered(api: &Api, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
    api.raw(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_page_of_another_site_can_ask_nothing_without_authentication() {
    let api = Api::start().await;
    for (headers, names) in [
        (&[("host", "evil.example:80")][..], "Host"),
        (&[("host", "api:9511"), ("sec-fetch-site", "cross-site")], "Sec-Fetch-Site"),
        (&[("host", "api:9511"), ("sec-fetch-site", "same-site")], "Sec-Fetch-Site"),
        (&[("host", "api:9511"), ("origin", "http://evil.example")], "Origin"),
        (&[("host", "api:9511"), ("origin", "null")], "Origin"),
    ] {
        for (method, path) in [("GET", "/v1/clusters"), ("DELETE", "/v1/clusters/x"), ("GET", "/")]
        {
            let refused = answered(&api, method, path, headers).await.has(403);
            assert!(refused.text.contains(names), "{method} {path} {headers:?}: {}", refused.text);
            assert!(refused.text.contains("errors"), "{}", refused.text);
        }
    }
    for headers in [
        &[("host", "api:9511")][..],
        &[("host", "localhost:1")],
        &[("host", "127.0.0.1")],
        &[("host", "[::1]:1"), ("sec-fetch-site", "none")],
        &[("host", "api:9511"), ("sec-fetch-site", "same-origin"), ("origin", "http://api:9511")],
    ] {
        answered(&api, "GET", "/v1/clusters", headers).await.has(200);
    }
}

#[tokio::test]
async fn a_remembered_password_does_not_let_another_site_change_anything() {
    let api = Api::with(users()).await;
    // admin:secret.
    let known = ("authorization", "Basic YWRtaW46c2VjcmV0");
    let page = ("sec-fetch-site", "cross-site");
    let refused = answered(&api, "DELETE", "/v1/clusters/x", &[("host", "api:9511"), known, page])
        .await
        .has(403);
    assert!(refused.text.contains("Sec-Fetch-Site"), "{}", refused.text);
    let form = ("origin", "http://evil.example");
    answered(&api, "POST", "/v1/clusters", &[("host", "api:9511"), known, form]).await.has(403);
    // Programs that are not browsers may use a host name that is not configured.
    answered(&api, "DELETE", "/v1/clusters/x", &[("host", "any.example"), known]).await.has(404);
    answered(&api, "GET", "/v1/clusters", &[("host", "api:9511"), known, page]).await.has(200);
}
