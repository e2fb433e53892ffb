//! Any input is answered with a refusal that names the mistake, and never with a 5xx status.

use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

/// Every route that reads a body, with a body that it accepts.
fn readers() -> Vec<(&'static str, String, Value)> {
    let node = |part: &str| format!("/v1/nodes/{ID}{part}");
    vec![
        (
            "POST",
            "/v1/nodes".to_owned(),
            json!({"driver": "fake-hardware", "extra": {}, "driver_info": {}, "owner": "x"}),
        ),
        ("PATCH", node(""), json!([{"op": "add", "path": "/extra/a", "value": 1}])),
        (
            "PUT",
            node("/states/provision"),
            json!({"target": "manage", "configdrive": null, "clean_steps": null}),
        ),
        ("PUT", node("/states/power"), json!({"target": "power on", "timeout": 5})),
        ("PUT", node("/maintenance"), json!({"reason": "x"})),
        (
            "PUT",
            node("/management/boot_device"),
            json!({"boot_device": "pxe", "persistent": false}),
        ),
        ("PUT", node("/traits"), json!({"traits": ["CUSTOM_A"]})),
        ("POST", node("/vifs"), json!({"id": "x"})),
        (
            "POST",
            "/v1/ports".to_owned(),
            json!({"node_uuid": ID, "address": "52:54:00:00:00:01", "extra": {}}),
        ),
        ("PUT", format!("/bedplate/v1/nodes/{ID}/identify"), json!({"on": true})),
    ]
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[track_caller]
fn is_a_refusal(answer: &Answer, what: &str) {
    assert!(answer.status.is_client_error(), "{what}: {} {}", answer.status, answer.text);
    assert!(answer.json()["error_message"].is_string(), "{what}: {}", answer.text);
    assert!(answer.text.len() < 4096, "{what}: a refusal of {} bytes", answer.text.len());
}

#[tokio::test]
async fn invalid_json_is_refused_everywhere() {
    let api = Api::start().await;
    api.enroll("").await;
    let deep = format!("{{\"extra\": {}", "[".repeat(100_000));
    let huge = vec![b' '; (16 << 20) + 1];
    for (method, path, _) in readers() {
        for body in
            [&b"{"[..], b"\xff\xfe", b"{\"a\": \"\xff\"}", b"nul", b"[[[[", deep.as_bytes(), &huge]
        {
            let request = Request::builder()
                .method(method)
                .uri(&path)
                .header("x-openstack-ironic-api-version", NEWEST)
                .header("content-type", "application/json");
            let answer = api.raw(request.body(Body::from(body.to_vec())).unwrap()).await;
            is_a_refusal(&answer, &format!("{method} {path}"));
        }
        let request = Request::builder()
            .method(method)
            .uri(&path)
            .header("x-openstack-ironic-api-version", NEWEST)
            .header("content-type", "text/plain");
        api.raw(request.body(Body::from("{}")).unwrap()).await.has(415);
    }
}

/// `body` with the first key of its first object duplicated, and that key.
fn doubled(body: &Value) -> (String, String) {
    let object = body.get(0).unwrap_or(body).as_object().unwrap();
    let (key, value) = object.iter().next().unwrap();
    let twice = format!("{{{key:?}:{value},");
    (body.to_string().replacen('{', &twice, 1), key.clone())
}

#[tokio::test]
async fn a_duplicate_key_is_refused_everywhere() {
    let api = Api::start().await;
    api.enroll("").await;
    for (method, path, body) in readers() {
        let (text, key) = doubled(&body);
        let request = Request::builder()
            .method(method)
            .uri(&path)
            .header("x-openstack-ironic-api-version", NEWEST)
            .header("content-type", "application/json");
        let answer = api.raw(request.body(Body::from(text)).unwrap()).await.has(400);
        is_a_refusal(&answer, &format!("{method} {path}"));
        let named = answer.text.contains(&key) && answer.text.contains("duplicate key");
        assert!(named, "{method} {path}: {}", answer.text);
    }
}

#[tokio::test]
async fn an_unknown_field_is_named_everywhere() {
    let api = Api::start().await;
    api.enroll("").await;
    for (method, path, body) in readers() {
        let mut body = body;
        let part = if body.is_array() { &mut body[0] } else { &mut body };
        part.as_object_mut().unwrap().insert("zebra".to_owned(), json!(1));
        if path.ends_with("/vifs") {
            continue; // Unknown fields are accepted on this path.
        }
        let answer = api.send(method, &path, NEWEST, &body.to_string()).await;
        is_a_refusal(&answer, &path);
        assert!(answer.text.contains("zebra"), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_wrong_type_is_named_everywhere() {
    let api = Api::start().await;
    api.enroll("").await;
    for (method, path, body) in readers() {
        let part = body.get(0).unwrap_or(&body).as_object().unwrap();
        let fields: Vec<String> = part.keys().cloned().collect();
        for field in fields.iter().filter(|field| *field != "value" && *field != "configdrive") {
            let mut wrong = body.clone();
            let part = if wrong.is_array() { &mut wrong[0] } else { &mut wrong };
            part[field] = json!([[7]]);
            let answer = api.send(method, &path, NEWEST, &wrong.to_string()).await;
            is_a_refusal(&answer, &format!("{method} {path} {field}"));
            assert!(answer.text.contains(field.as_str()), "{path}: {field}: {}", answer.text);
        }
    }
}

/// Small JSON values of any kind.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

#[test]
fn no_body_causes_a_5xx() {
    block_on(async {
        let api = Api::start().await;
        api.enroll("").await;
        let readers = readers();
        let mut runner = TestRunner::new(Config::with_cases(400));
        let whole = any_json().prop_map(|value| (None, value));
        let one_field =
            (any::<prop::sample::Index>(), any_json()).prop_map(|(at, value)| (Some(at), value));
        let strategy = (0..readers.len(), prop_oneof![whole, one_field]);
        for _ in 0..400 {
            let (reader, (at, value)) = strategy.new_tree(&mut runner).unwrap().current();
            let (method, path, good) = &readers[reader];
            let body = match (at, good) {
                (None, _) => value,
                (Some(at), Value::Array(list)) => {
                    let mut operation = list[0].clone();
                    let field = ["op", "path", "value"][at.index(3)];
                    operation[field] = value;
                    json!([operation])
                }
                (Some(at), good) => {
                    let mut changed = good.clone();
                    let object = changed.as_object_mut().unwrap();
                    let key = object.keys().nth(at.index(object.len())).unwrap().clone();
                    object.insert(key, value);
                    changed
                }
            };
            let answer = api.send(method, path, NEWEST, &body.to_string()).await;
            assert!(
                !answer.status.is_server_error(),
                "{method} {path} {body}: {} {}",
                answer.status,
                answer.text
            );
        }
    });
}

#[test]
fn no_path_or_query_causes_a_5xx() {
    block_on(async {
        let api = Api::start().await;
        api.enroll("").await;
        let document = api.get("/openapi.json").await.json();
        let paths: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
        let mut runner = TestRunner::new(Config::default());
        let names = "(limit|marker|sort_key|sort_dir|fields|detail|owner|driver|fault|shard|type|node|address|parent_node|zz)";
        let query = proptest::collection::vec((names, "[a-z0-9%,.-]{0,10}"), 0..3);
        let strategy = (0..paths.len(), "[a-z0-9%.~-]{1,12}", query);
        for _ in 0..600 {
            let (path, segment, query) = strategy.new_tree(&mut runner).unwrap().current();
            let mut path = paths[path].clone();
            while let Some(begin) = path.find('{') {
                let end = path[begin..].find('}').unwrap() + begin;
                path.replace_range(begin..=end, &segment);
            }
            let query: Vec<String> =
                query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let uri = format!("{path}?{}", query.join("&"));
            if uri.parse::<http::Uri>().is_err() {
                continue;
            }
            let answer = api.get(&uri).await;
            assert!(!answer.status.is_server_error(), "{uri}: {} {}", answer.status, answer.text);
        }
    });
}
