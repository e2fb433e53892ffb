//! The OpenAPI document agrees with the routes of its API.

use openstack_api::conformance::{check_answers, check_references, check_routes, check_rows};

use crate::InProcessApi;

/// Every described route answers, every route has one row in the policy table, every answer is described, and every reference resolves. The
/// API has more than `least` routes.
pub async fn agrees_with_routes(api: &InProcessApi, least: usize) {
    let answer = api.get("/openapi.json").await.has(200);
    let document = answer.json();
    let routes = check_routes(&document, async |method: &str, path: &str| {
        let answer = api.send(method, path, api.format.newest, "").await;
        (answer.status, answer.text)
    });
    let routes = routes.await;
    assert!(routes > least, "only {routes} routes are described");
    check_rows(&document, &api.get("/bedplate/v1/policy").await.has(200).json());
    check_answers(&document);
    check_references(&answer.text);
}
