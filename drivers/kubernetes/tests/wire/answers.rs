//! Tests of faulty answers, and of lists in pages.

use kubernetes::{KubernetesError, apply, nodes};
use serde_json::{Value, json};

use crate::server::{ReceivedRequest, Reply, Server};

fn status(code: u16, reason: &str) -> Reply {
    Reply::Json(code, json!({"kind": "Status", "reason": reason, "message": "told", "code": code}))
}

#[tokio::test]
async fn pages_are_read_to_their_end() {
    let page = |names: &[&str], more: &str| {
        let items: Vec<Value> = names.iter().map(|it| json!({"metadata": {"name": it}})).collect();
        Reply::Json(200, json!({"metadata": {"continue": more}, "items": items}))
    };
    let server = Server::start(move |asked: &ReceivedRequest| {
        if asked.line.contains("continue=") { page(&["c"], "") } else { page(&["a", "b"], "x y") }
    })
    .await;
    let all = nodes::list(&server.client()).await.unwrap();
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(
        server.lines(),
        ["GET /api/v1/nodes?limit=250", "GET /api/v1/nodes?limit=250&continue=x+y"]
    );
}

#[tokio::test]
async fn an_endless_list_is_an_error() {
    let body = json!({"metadata": {"continue": "x"}, "items": []});
    let server = Server::start(move |_| Reply::Json(200, body.clone())).await;
    let error = nodes::list(&server.client()).await.unwrap_err();
    assert!(error.to_string().ends_with("its pages do not end"), "{error}");
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn a_faulty_answer_is_limited_in_size_and_not_quoted() {
    let server = Server::start(|_| Reply::Endless).await;
    let mut access = server.access();
    access.timeouts.call = std::time::Duration::from_secs(60);
    let client = kubernetes::Client::new(&access).unwrap();
    let error = nodes::list(&client).await.unwrap_err();
    assert!(error.to_string().ends_with("it is larger than 32 MiB"), "{error}");

    let server = Server::start(|_| Reply::Json(200, json!({"items": "hunter2"}))).await;
    let error = nodes::list(&server.client()).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Malformed { .. }), "{error:?}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_missing_object_counts_as_deleted_and_a_busy_server_is_transient() {
    let server = Server::start(|_| status(404, "NotFound")).await;
    nodes::delete(&server.client(), "n").await.unwrap();
    assert_eq!(nodes::find(&server.client(), "n").await.unwrap(), None);

    let body = json!({"details": {"retryAfterSeconds": 3}});
    let server = Server::start(move |_| Reply::Json(429, body.clone())).await;
    let error = nodes::delete(&server.client(), "n").await.unwrap_err();
    assert_eq!(error.retry_after().map(|it| it.as_secs()), Some(3));
    assert!(error.is_transient());
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn names_that_would_change_the_path_are_refused() {
    let server = Server::start(|_| status(200, "")).await;
    for name in ["", "..", "a/b", "."] {
        let error = nodes::delete(&server.client(), name).await.unwrap_err();
        assert!(matches!(error, KubernetesError::InvalidName { .. }), "{error:?}");
    }
    assert_eq!(server.lines().len(), 0);
}

#[tokio::test]
async fn a_document_is_sent_to_the_discovered_path() {
    let resources = json!({"resources": [
        {"name": "pods/status", "kind": "Gadget", "namespaced": true},
        {"name": "gadgets", "kind": "Gadget", "namespaced": true},
    ]});
    let server = Server::start(move |asked: &ReceivedRequest| match asked.line.as_str() {
        "GET /apis/e.example/v1" => Reply::Json(200, resources.clone()),
        _ => Reply::Json(200, json!({})),
    })
    .await;
    let client = server.client();
    let text = "{apiVersion: e.example/v1, kind: Gadget, metadata: {name: g, namespace: n}}\n--- {apiVersion: e.example/v1, kind: Gadget, metadata: {name: h}}";
    apply::apply(&client, &apply::documents(text).unwrap()).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /apis/e.example/v1",
            "PATCH /apis/e.example/v1/namespaces/n/gadgets/g?fieldManager=bedplate&force=true",
            "PATCH /apis/e.example/v1/namespaces/default/gadgets/h?fieldManager=bedplate&force=true",
        ]
    );
    assert_eq!(server.asked()[1].header("content-type"), Some("application/apply-patch+yaml"));
    let other = "{apiVersion: e.example/v1, kind: Other, metadata: {name: o}}";
    let error = apply::apply(&client, &apply::documents(other).unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the cluster has no Other of e.example/v1");
    apply::delete(&client, &apply::documents(other).unwrap()).await.unwrap();
}
