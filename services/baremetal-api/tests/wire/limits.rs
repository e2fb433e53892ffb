//! Requests beyond a limit are refused in Ironic's envelope; requests just below the limit are accepted.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use baremetal_core::{NodeUuid, Port, PortUuid};
use hardware::MacAddress;
use http::Request;
use jiff::Timestamp;
use openstack_api::{Auth, Htpasswd, Limits};
use serde_json::{Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

/// The hash of "secret", the password of Ann and Bob (bcrypt, cost 4).
const HASH: &str = "$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy";
const ANN: &str = "Basic YW5uOnNlY3JldA==";
const BOB: &str = "Basic Ym9iOnNlY3JldA==";

async fn limited(auth: Auth, limits: &str) -> Api {
    Api::within(auth, toml::from_str::<Limits>(limits).unwrap()).await
}

/// The description in the envelope of a refusal before any handler.
fn described(answer: Answer, status: u16) -> String {
    let answer = answer.has(status);
    let inner = answer.json()["error_message"].as_str().unwrap().to_owned();
    let inner: Value = serde_json::from_str(&inner).unwrap();
    assert_eq!(inner["code"], status);
    inner["description"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn size_and_nesting_of_a_body_are_limited() {
    let api = limited(Auth::None, "body = 64\njson_depth = 3\njson_elements = 5").await;
    let send = async |body: &str| api.send("POST", "/v1/nodes", NEWEST, body).await;
    let padded = |length: usize| format!("{{{:>1$}", '}', length - 1);
    send(&padded(64)).await.has(400);
    send(&padded(65)).await.refuses(413, "body: is larger than this route accepts");
    send(r#"{"driver": "fake-hardware", "extra": {"a": []}}"#).await.has(201);
    let deep = send(r#"{"driver": "fake-hardware", "extra": {"a": [[]]}}"#).await;
    deep.refuses(400, "body: is nested deeper than 3 (json_depth)");
    let wide = send(r#"{"driver": "fake-hardware", "extra": {"a": [1,2,3,4]}}"#).await;
    wide.refuses(400, "body: has more than 5 elements (json_elements)");
}

#[tokio::test]
async fn url_and_headers_are_limited() {
    let api = limited(Auth::None, "url = 40\nheaders = 200").await;
    let url = |length: usize| format!("/v1/nodes/{}", "x".repeat(length - 10));
    api.get(&url(40)).await.has(404);
    assert_eq!(described(api.get(&url(41)).await, 414), "the URL is longer than 40 bytes");
    let long = Request::get("/").header("x-long", "x".repeat(300)).body(Body::empty());
    let said = described(api.raw(long.unwrap()).await, 431);
    assert_eq!(said, "the headers are longer than 200 bytes in total");
}

#[tokio::test]
async fn the_rate_of_one_caller_does_not_affect_another() {
    let file = Htpasswd::parse(&format!("ann:{HASH}\nbob:{HASH}\n")).unwrap();
    let api = limited(Auth::HttpBasic(Arc::new(file)), "reads_per_second = 1").await;
    let get = async |who: &str| {
        let request = Request::get("/v1/nodes").header("authorization", who);
        api.raw(request.body(Body::empty()).unwrap()).await
    };
    for _ in 0..4 {
        get(ANN).await.has(200);
    }
    // A second may have passed meanwhile, so one more request may be accepted.
    let _ = get(ANN).await;
    let late = get(ANN).await;
    assert_eq!(late.headers["retry-after"], "1");
    assert!(described(late, 429).starts_with("you sent more than 1 read requests"));
    get(BOB).await.has(200);
}

/// An API with ten allocations of 8 KiB each.
async fn with_large_allocations(auth: Auth, limits: &str) -> Api {
    let api = limited(auth, limits).await;
    for number in 0..10 {
        let notes = "x".repeat(8 << 10);
        let body = format!(
            r#"{{"name": "a{number}", "resource_class": "none", "extra": {{"a": "{notes}"}}}}"#
        );
        let request = Request::post("/v1/allocations").header("authorization", ANN);
        let request = request.header("x-openstack-ironic-api-version", NEWEST);
        let request = request.header("content-type", "application/json").header("host", "api");
        api.raw(request.body(Body::from(body)).unwrap()).await.has(201);
    }
    api
}

#[tokio::test]
async fn a_page_ends_at_its_byte_limit_and_the_next_continues() {
    let api = with_large_allocations(Auth::None, "page = 30000").await;
    let mut path = "/v1/allocations?sort_key=name&limit=9".to_owned();
    let (mut names, mut pages) = (Vec::new(), 0);
    loop {
        let answer = api.get(&path).await.has(200);
        assert!(answer.text.len() < 45_000, "{} bytes", answer.text.len());
        let list = answer.json();
        let found = list["allocations"].as_array().unwrap();
        names.extend(found.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = list["next"].as_str() else { break };
        path = next.strip_prefix("http://api:6385").unwrap().to_owned();
        assert!(path.contains("sort_key=name"), "{path}");
    }
    assert_eq!(names, (0..10).map(|number| format!("a{number}")).collect::<Vec<_>>());
    assert!(pages >= 2, "{pages} pages");
}

#[tokio::test]
async fn a_node_has_a_limited_number_of_ports() {
    let api = Api::start().await;
    api.enroll("").await;
    let node = ID.parse::<NodeUuid>().unwrap();
    let mac = |n: u8| MacAddress::new([0x52, 0x54, 0, 0, 0, n]);
    for n in 0..=u8::MAX {
        let port = Port::new(PortUuid::new_v4(), node, mac(n), Timestamp::UNIX_EPOCH);
        api.store.insert_port(&port).await.unwrap();
    }
    let body = json!({"node_uuid": ID, "address": "52:54:00:00:01:00"}).to_string();
    let more = api.send("POST", "/v1/ports", NEWEST, &body).await;
    more.refuses(403, "ports: the node uses 256 of its limit of 256");
}

#[tokio::test]
async fn a_caller_that_reads_no_lists_is_refused_and_others_are_not() {
    let file = Htpasswd::parse(&format!("ann:{HASH}\nbob:{HASH}\n")).unwrap();
    let auth = Auth::HttpBasic(Arc::new(file));
    let api = with_large_allocations(auth, "bytes_in_flight_each = 300000").await;
    let list = async |who: &str| {
        let request = Request::get("/v1/allocations").header("authorization", who);
        let request = request.header("x-openstack-ironic-api-version", NEWEST);
        api.open(request.header("host", "api").body(Body::empty()).unwrap()).await
    };
    let mut untaken = Vec::new();
    let refused = loop {
        let answer = list(ANN).await;
        if answer.status() != 200 {
            break answer;
        }
        untaken.push(answer);
        assert!(untaken.len() < 16, "sixteen lists wait to be taken");
    };
    assert!(!untaken.is_empty(), "one is always answered");
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    let why = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
    let why = String::from_utf8(why.to_vec()).unwrap();
    assert!(why.contains("you have more than 300000 bytes in flight"), "{why}");
    assert_eq!(list(BOB).await.status(), 200);
    for answer in untaken {
        to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    }
    assert_eq!(list(ANN).await.status(), 200);
}
