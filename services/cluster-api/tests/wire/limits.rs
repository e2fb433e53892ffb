//! Requests beyond a limit are refused in Magnum's envelope, and requests just below the limit are not.

use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_api::Streams;
use http::Request;
use http_body_util::BodyExt;
use openstack_api::{Auth, Htpasswd, Limits, Trail};

use crate::api::{Answer, Api, NEWEST};

/// The bcrypt hash of "secret", cost 4: the password of Ann and Bob.
const HASH: &str = "$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy";
const ANN: &str = "Basic YW5uOnNlY3JldA==";
const BOB: &str = "Basic Ym9iOnNlY3JldA==";

fn users() -> Auth {
    let file = Htpasswd::parse(&format!("ann:{HASH}\nbob:{HASH}\n")).unwrap();
    Auth::HttpBasic(Arc::new(file))
}

async fn limited(auth: Auth, limits: &str) -> Api {
    Api::within(auth, toml::from_str::<Limits>(limits).unwrap()).await
}

fn request(path: &str, who: &str) -> http::request::Builder {
    let request = Request::get(path).header("host", "api").header("openstack-api-version", NEWEST);
    request.header("authorization", who)
}

async fn get(api: &Api, who: &str) -> Answer {
    api.raw(request("/v1/clusters", who).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn length_depth_and_elements_of_a_body_are_limited() {
    let api = limited(Auth::None, "body = 64\njson_depth = 3\njson_elements = 5").await;
    let send = async |body: &str| api.send("POST", "/v1/quotas", NEWEST, body).await;
    let padded = |length: usize| format!("{{{:>1$}", '}', length - 1);
    send(&padded(64)).await.has(400);
    send(&padded(65)).await.refuses(413, "body: is larger than this route accepts");
    assert!(send(r#"{"a": [[]]}"#).await.has(400).text.contains("unknown field"));
    let deep = send(r#"{"a": [[[]]]}"#).await;
    deep.refuses(400, "body: is nested deeper than 3 (json_depth)");
    assert!(send(r#"{"a": [1, 2, 3, 4]}"#).await.has(400).text.contains("unknown field"));
    let wide = send(r#"{"a": [1, 2, 3, 4, 5]}"#).await;
    wide.refuses(400, "body: has more than 5 elements (json_elements)");
}

#[tokio::test]
async fn url_and_headers_are_limited() {
    let api = limited(Auth::None, "url = 40\nheaders = 200").await;
    let url = |length: usize| format!("/v1/clusters?marker={}", "x".repeat(length - 20));
    api.get(&url(40)).await.has(400);
    api.get(&url(41)).await.refuses(414, "the URL is longer than 40 bytes");
    let long = Request::get("/").header("x-long", "x".repeat(300)).body(Body::empty());
    api.raw(long.unwrap()).await.refuses(431, "the headers are longer than 200 bytes in total");
}

#[tokio::test]
async fn two_callers_do_not_disturb_each_other() {
    let api = limited(users(), "reads_per_second = 1").await;
    let mut answers = Vec::new();
    for _ in 0..8 {
        answers.push(get(&api, ANN).await);
    }
    assert!(answers[..4].iter().all(|answer| answer.status == 200));
    let late = answers.pop().unwrap();
    assert_eq!(late.headers["retry-after"], "1");
    late.refuses(429, "you sent more than 1 read requests in a second: retry later");
    get(&api, BOB).await.has(200);
    let write = request("/v1/clusters/none", ANN).method("DELETE").body(Body::empty()).unwrap();
    api.raw(write).await.has(404);
}

#[tokio::test]
async fn requests_beyond_the_rate_limit_are_not_recorded() {
    let api = limited(users(), "writes_per_second = 1").await;
    let mut taken = 0;
    for _ in 0..40 {
        let write = request("/v1/clusters/none", ANN).method("DELETE").body(Body::empty());
        let answer = api.raw(write.unwrap()).await;
        if answer.status != 429 {
            answer.has(404);
            taken += 1;
        }
    }
    assert!(taken < 40, "there is no limit");
    api.store.trail().flush().await;
    // Two rows for each request: before it is carried out, and its result.
    assert_eq!(api.store.trail().head().await.unwrap().number, 2 * taken);
}

#[tokio::test]
async fn wrong_passwords_are_slow_and_right_ones_are_not() {
    let api = limited(users(), "guesses_per_minute = 1").await;
    get(&api, BOB).await.has(200);
    let wrong = |number: usize| format!("Basic {}", STANDARD.encode(format!("ann:{number}")));
    for number in 0..2 {
        get(&api, &wrong(number)).await.has(401);
    }
    // Further wrong passwords wait a minute each, in a queue of limited length.
    let mut waiting = Vec::new();
    let refused = loop {
        let request = request("/v1/clusters", &wrong(2 + waiting.len())).body(Body::empty());
        let mut next = Box::pin(api.open(request.unwrap()));
        match futures::poll!(&mut next) {
            Poll::Ready(answer) => break answer,
            Poll::Pending => waiting.push(next),
        }
        assert!(waiting.len() < 100, "any number may wait");
    };
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    get(&api, BOB).await.has(200);
}

#[tokio::test]
async fn one_caller_does_not_take_all_streams() {
    let api = Api::for_streams_of(users(), Streams::at_most(3).for_each(2)).await;
    let body = r#"{"name": "t", "image_id": "fcos", "coe": "kubernetes", "flavor_id": "f"}"#;
    let post = |path: &str, body: &'static str| {
        let request = request(path, ANN).method("POST").header("content-type", "application/json");
        request.body(Body::from(body)).unwrap()
    };
    api.raw(post("/v1/clustertemplates", body)).await.has(201);
    api.raw(post("/v1/clusters", r#"{"name": "c", "cluster_template_id": "t"}"#)).await.has(202);
    let follow = |who: &str| {
        let request = request("/bedplate/v1/clusters/c/events", who);
        api.open(request.header("accept", "text/event-stream").body(Body::empty()).unwrap())
    };
    let anns = [follow(ANN).await, follow(ANN).await];
    assert!(anns.iter().all(|answer| answer.status() == 200));
    let refused = follow(ANN).await;
    assert_eq!(refused.status(), 503);
    let text = refused.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&text).unwrap();
    assert!(text.contains("all 2 event streams that you may open are in use"), "{text}");
    let bobs = follow(BOB).await;
    assert_eq!(bobs.status(), 200);
    assert_eq!(follow(BOB).await.status(), 503, "there are three in all");
    drop(anns);
    assert_eq!(follow(ANN).await.status(), 200);
}

#[tokio::test]
async fn every_response_has_security_headers_and_no_other_site_is_permitted() {
    let api = Api::start().await;
    for (method, path) in
        [("GET", "/"), ("GET", "/v1/clusters"), ("GET", "/nowhere"), ("OPTIONS", "/v1/clusters")]
    {
        let request = Request::builder().method(method).uri(path).header("origin", "http://evil");
        let request = request.header("access-control-request-method", "POST");
        let answer = api.raw(request.body(Body::empty()).unwrap()).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(answer.headers[name], value, "{method} {path}");
        }
        let mut names = answer.headers.keys().map(http::HeaderName::as_str);
        let reported = names.find(|name| {
            name.starts_with("access-control-")
                || ["server", "strict-transport-security"].contains(name)
        });
        assert_eq!(reported, None, "{method} {path}");
        assert_eq!(answer.status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn the_size_of_a_document_is_limited_for_every_request_that_grows_it() {
    let api = limited(Auth::None, "document = 2000").await;
    let body = |proxy: usize| {
        let proxy = "x".repeat(proxy);
        format!(r#"{{"name": "t", "image_id": "i", "coe": "kubernetes", "no_proxy": "{proxy}"}}"#)
    };
    let why = |answer: &Answer| answer.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    let large = api.post("/v1/clustertemplates", &body(2000)).await.has(400);
    assert!(why(&large).starts_with("no_proxy: the document would have 2"), "{}", why(&large));
    assert!(why(&large).ends_with("the limit is 2000 (api.limits.document)"), "{}", why(&large));
    api.post("/v1/clustertemplates", &body(1500)).await.has(201);

    let patch = |field: &str, value: &str| {
        format!(r#"[{{"op": "replace", "path": "/{field}", "value": "{value}"}}]"#)
    };
    let path = "/v1/clustertemplates/t";
    let tags = api.send("PATCH", path, NEWEST, &patch("tags", &"y".repeat(700))).await.has(400);
    assert!(why(&tags).starts_with("no_proxy: the document would have 2"), "{}", why(&tags));
    assert!(api.get(path).await.json()["tags"].is_null(), "nothing was changed");
    api.send("PATCH", path, NEWEST, &patch("tags", "small")).await.has(200);

    api.template("u", "").await;
    api.post("/v1/clusters", r#"{"name": "c", "cluster_template_id": "u"}"#).await.has(202);
    let reason = format!(r#"{{"a": "{text}", "b": "{text}"}}"#, text = "z".repeat(1000));
    let patch =
        format!(r#"[{{"op": "replace", "path": "/health_status_reason", "value": {reason}}}]"#);
    let reported = api.patch("/v1/clusters/c", &patch).await.has(400);
    let said = why(&reported);
    assert!(said.starts_with("health_status_reason: the document would have 2"), "{said}");
}
