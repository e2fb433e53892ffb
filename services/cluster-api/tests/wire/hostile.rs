//! Every malformed request gets a refusal that names the mistake, never a 5xx.

use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::api::{Answer, Api, NEWEST};

/// Every route that reads a body, with a body that it accepts.
fn readers() -> Vec<(&'static str, &'static str, Value)> {
    let operation = |path: &str| json!([{"op": "add", "path": path, "value": 1}]);
    vec![
        (
            "POST",
            "/v1/clustertemplates",
            json!({"image_id": "i", "coe": "kubernetes", "labels": {}, "public": false, "docker_volume_size": 1}),
        ),
        ("PATCH", "/v1/clustertemplates/t", operation("/docker_volume_size")),
        (
            "POST",
            "/v1/clusters",
            json!({"cluster_template_id": "t", "node_count": 1, "labels": {}, "merge_labels": true, "flavor_id": "f"}),
        ),
        ("PATCH", "/v1/clusters/c", operation("/node_count")),
        (
            "POST",
            "/v1/clusters/c/actions/resize",
            json!({"node_count": 1, "nodes_to_remove": [], "nodegroup": "default-worker"}),
        ),
        (
            "POST",
            "/v1/clusters/c/actions/upgrade",
            json!({"cluster_template": "t", "max_batch_size": 1}),
        ),
        (
            "POST",
            "/v1/clusters/c/nodegroups",
            json!({"name": "g", "node_count": 1, "labels": {}, "node_labels": {}, "node_taints": []}),
        ),
        ("PATCH", "/v1/clusters/c/nodegroups/default-worker", operation("/max_node_count")),
        ("POST", "/v1/certificates", json!({"cluster_uuid": "c", "csr": "x"})),
        ("POST", "/v1/quotas", json!({"project_id": "p", "resource": "Cluster", "hard_limit": 1})),
        ("PATCH", "/v1/quotas/default/Cluster", json!({"hard_limit": 1})),
        ("POST", "/bedplate/v1/plan", json!({"cluster_template_id": "t", "master_count": 1})),
    ]
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[track_caller]
fn is_a_refusal(answer: &Answer, what: &str) {
    assert!(answer.status.is_client_error(), "{what}: {} {}", answer.status, answer.text);
    assert!(answer.json()["errors"][0]["detail"].is_string(), "{what}: {}", answer.text);
    assert!(answer.text.len() < 4096, "{what}: a refusal of {} bytes", answer.text.len());
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_everywhere() {
    let api = Api::start().await;
    api.small().await;
    let deep = format!("{{\"labels\": {}", "[".repeat(100_000));
    let huge = vec![b' '; (256 << 10) + 1];
    for (method, path, _) in readers() {
        for body in
            [&b"{"[..], b"\xff\xfe", b"{\"a\": \"\xff\"}", b"nul", b"[[[[", deep.as_bytes(), &huge]
        {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("openstack-api-version", NEWEST)
                .header("content-type", "application/json");
            let answer = api.raw(request.body(Body::from(body.to_vec())).unwrap()).await;
            is_a_refusal(&answer, &format!("{method} {path}"));
        }
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("openstack-api-version", NEWEST)
            .header("content-type", "text/plain");
        api.raw(request.body(Body::from("{}")).unwrap()).await.has(415);
    }
}

/// `body` with the first key of its first object twice, and that key.
fn doubled(body: &Value) -> (String, String) {
    let object = body.get(0).unwrap_or(body).as_object().unwrap();
    let (key, value) = object.iter().next().unwrap();
    let twice = format!("{{{key:?}:{value},");
    (body.to_string().replacen('{', &twice, 1), key.clone())
}

#[tokio::test]
async fn a_key_that_is_given_twice_is_refused_everywhere() {
    let api = Api::start().await;
    for (method, path, body) in readers() {
        let (text, key) = doubled(&body);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("openstack-api-version", NEWEST)
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
    api.small().await;
    for (method, path, body) in readers() {
        let mut body = body;
        let part = if body.is_array() { &mut body[0] } else { &mut body };
        part.as_object_mut().unwrap().insert("zebra".to_owned(), json!(1));
        let answer = api.send(method, path, NEWEST, &body.to_string()).await;
        is_a_refusal(&answer, path);
        assert!(answer.text.contains("zebra"), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_wrong_type_is_named_everywhere() {
    let api = Api::start().await;
    api.small().await;
    for (method, path, body) in readers() {
        let part = body.get(0).unwrap_or(&body).as_object().unwrap();
        let fields: Vec<String> = part.keys().cloned().collect();
        for field in fields.iter().filter(|field| *field != "value") {
            let mut wrong = body.clone();
            let part = if wrong.is_array() { &mut wrong[0] } else { &mut wrong };
            part[field] = json!([[7]]);
            let answer = api.send(method, path, NEWEST, &wrong.to_string()).await;
            is_a_refusal(&answer, &format!("{method} {path} {field}"));
            assert!(answer.text.contains(field.as_str()), "{path}: {field}: {}", answer.text);
        }
    }
}

/// Any JSON of moderate size.
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
fn no_body_causes_a_server_error() {
    block_on(async {
        let api = Api::start().await;
        api.small().await;
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
fn no_path_or_query_causes_a_server_error() {
    block_on(async {
        let api = Api::start().await;
        api.small().await;
        let document = api.get("/openapi.json").await.json();
        let paths: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
        let mut runner = TestRunner::new(Config::default());
        let names = "(limit|marker|sort_key|sort_dir|role|project_id|all_tenants|ca_cert_type|zz)";
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
