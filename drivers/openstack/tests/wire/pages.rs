//! Tests of lists in pages.

use openstack::compute::servers;
use openstack::dns::recordsets;
use openstack::image::images;
use serde_json::{Value, json};

use crate::cloud::{Cloud, ReceivedRequest, Reply};

fn page(key: &str, status: &str, ids: std::ops::Range<usize>) -> Value {
    let entries: Vec<Value> = ids
        .map(|id| json!({"id": id.to_string(), "name": "n", "status": status, "type": "A"}))
        .collect();
    json!({key: entries})
}

#[tokio::test]
async fn novas_pages_are_read_from_the_known_endpoint() {
    let answer = |asked: &ReceivedRequest, n| {
        let mut body = page("servers", "ACTIVE", n * 2..n * 2 + 2);
        if n < 2 {
            // The link of a service behind a proxy that hides the public address.
            let next =
                format!("http://10.0.0.1:1/v2.1/servers/detail?name=%5En%24&marker={}", n * 2 + 1);
            body["servers_links"] = json!([{"rel": "next", "href": next}]);
        }
        assert_eq!(asked.header("openstack-api-version"), Some("compute 2.67"));
        Reply::json(200, body)
    };
    let cloud = Cloud::start(answer).await;
    let found = servers::find(&cloud.session(), "n").await.unwrap();
    assert_eq!(found.len(), 6);
    assert_eq!(
        cloud.lines(),
        [
            "GET /compute/v2.1/servers/detail?name=%5En%24",
            "GET /compute/v2.1/servers/detail?name=%5En%24&marker=1",
            "GET /compute/v2.1/servers/detail?name=%5En%24&marker=3",
        ]
    );
}

#[tokio::test]
async fn glances_and_designates_pages_are_read() {
    let answer = |_: &ReceivedRequest, n| {
        let mut body = page("images", "active", n..n + 1);
        if n == 0 {
            body["next"] = json!("/v2/images?limit=1000&marker=0");
        }
        Reply::json(200, body)
    };
    let cloud = Cloud::start(answer).await;
    assert_eq!(images::list(&cloud.session()).await.unwrap().len(), 2);
    assert_eq!(cloud.lines()[1], "GET /image/v2/images?limit=1000&marker=0");

    let answer = |_: &ReceivedRequest, n| {
        let mut body = page("recordsets", "ACTIVE", n..n + 1);
        body["links"] = json!({"self": "x"});
        if n == 0 {
            body["links"]["next"] = json!("http://h/v2/zones/z/recordsets?limit=1000&marker=0");
        }
        Reply::json(200, body)
    };
    let cloud = Cloud::start(answer).await;
    assert_eq!(recordsets::list(&cloud.session(), "z").await.unwrap().len(), 2);
}

#[tokio::test]
async fn pages_that_link_back_are_an_error() {
    let answer = |_: &ReceivedRequest, _| {
        let mut body = page("images", "active", 0..1);
        body["next"] = json!("/v2/images?marker=0");
        Reply::json(200, body)
    };
    let cloud = Cloud::start(answer).await;
    let error = images::list(&cloud.session()).await.unwrap_err();
    assert!(error.to_string().ends_with("its pages do not end"), "{error}");
    assert_eq!(cloud.asked().len(), 2);
}
