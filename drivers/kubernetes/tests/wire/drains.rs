//! Tests of evictions and their possible answers.

use kubernetes::drain::drain;
use serde_json::{Value, json};

use crate::server::{ReceivedRequest, Reply, Server};

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}")}, "spec": {"nodeName": "w"}, "status": {"phase": "Running"}})
}

/// A server with these pods that answers evictions by `evict`.
async fn server(
    version: &'static str,
    pods: Vec<Value>,
    evict: impl Fn(&str) -> Reply + Send + 'static,
) -> Server {
    Server::start(move |asked: &ReceivedRequest| {
        let line = asked.line.as_str();
        if let Some(path) = line.strip_suffix("/eviction") {
            return evict(path.rsplit('/').next().unwrap());
        }
        match line {
            "GET /api/v1" => Reply::Json(200, json!({"resources": [
                {"name": "pods/eviction", "namespaced": true, "kind": "Eviction", "group": "policy", "version": version},
            ]})),
            _ if line.starts_with("GET /api/v1/pods?") => Reply::Json(200, json!({"items": pods})),
            _ => Reply::Json(200, json!({})),
        }
    })
    .await
}

fn budget() -> Reply {
    let details = json!({"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}]});
    Reply::Json(
        429,
        json!({"reason": "TooManyRequests", "message": "Cannot evict pod", "details": details}),
    )
}

#[tokio::test]
async fn each_pod_is_evicted_once_and_a_budget_blocks_only_its_own() {
    let mut going = pod("going");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let pods = vec![pod("held"), pod("free"), pod("gone"), going, pod("broken")];
    let server = server("v1beta1", pods, |name| match name {
        "held" => budget(),
        "gone" => Reply::Json(404, json!({"reason": "NotFound"})),
        "broken" => {
            Reply::Json(500, json!({"message": "This pod has more than one PodDisruptionBudget"}))
        }
        _ => Reply::Json(201, json!({})),
    })
    .await;
    let left = drain(&server.client(), "w").await.unwrap();
    let names = |pods: &[kubernetes::PodName]| {
        pods.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((names(&left.evicted), names(&left.leaving)), ("n/free".into(), "n/going".into()));
    let held: Vec<String> =
        left.held.iter().map(|it| format!("{}: {}", it.pod, it.reason)).collect();
    assert_eq!(
        held,
        ["n/held: Cannot evict pod", "n/broken: This pod has more than one PodDisruptionBudget",]
    );
    assert_eq!(
        server.lines(),
        [
            "PATCH /api/v1/nodes/w",
            "GET /api/v1/pods?limit=250&fieldSelector=spec.nodeName%3Dw",
            "GET /api/v1",
            "POST /api/v1/namespaces/n/pods/held/eviction",
            "POST /api/v1/namespaces/n/pods/free/eviction",
            "POST /api/v1/namespaces/n/pods/gone/eviction",
            "POST /api/v1/namespaces/n/pods/broken/eviction",
        ]
    );
    let body = &server.asked()[4].body;
    assert_eq!(
        *body,
        json!({
            "apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "free", "namespace": "n"},
            "deleteOptions": {"preconditions": {"uid": "uid-free"}},
        })
    );
}

#[tokio::test]
async fn newer_servers_get_their_own_version() {
    let server = server("v1", vec![pod("a")], |_| Reply::Json(201, json!({}))).await;
    let left = drain(&server.client(), "w").await.unwrap();
    assert_eq!((left.evicted.len(), left.is_empty()), (1, false));
    assert_eq!(server.asked().pop().unwrap().body["apiVersion"], "policy/v1");
}

#[tokio::test]
async fn an_overloaded_server_ends_the_pass() {
    let server = server("v1", vec![pod("a"), pod("b")], |_| {
        Reply::Json(429, json!({"reason": "TooManyRequests", "details": {"retryAfterSeconds": 2}}))
    })
    .await;
    let error = drain(&server.client(), "w").await.unwrap_err();
    assert_eq!(error.retry_after().map(|it| it.as_secs()), Some(2));
    assert_eq!(server.lines().iter().filter(|it| it.ends_with("/eviction")).count(), 1);
}
