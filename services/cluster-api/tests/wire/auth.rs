//! Who may ask.

use std::sync::Arc;

use openstack_api::{Auth, Htpasswd};

use crate::api::{Api, NEWEST};

#[tokio::test]
async fn nothing_but_versions_is_told_to_strangers() {
    // bcrypt of "secret", cost 4.
    let users =
        Htpasswd::parse("admin:$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy")
            .unwrap();
    let api = Api::with(Auth::HttpBasic(Arc::new(users))).await;
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
