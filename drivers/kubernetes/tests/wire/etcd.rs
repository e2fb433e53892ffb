//! Tests of the pod that runs `etcdctl`, at every age. The server's clock says ten seconds past midnight.

use kubernetes::etcd::{self, MemberId, Progress};
use serde_json::{Value, json};

use crate::server::{ReceivedRequest, Reply, Server};

const LIST: &str = "/api/v1/namespaces/kube-system/pods/bedplate-etcd-list-cp-1";
const REMOVE: &str = "/api/v1/namespaces/kube-system/pods/bedplate-etcd-remove-2a";

fn pod(created: &str, phase: &str) -> Value {
    json!({
        "metadata": {"name": "p", "uid": "u", "creationTimestamp": created},
        "spec": {"nodeName": "cp-1"},
        "status": {"phase": phase, "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
    })
}

/// A server that has this pod, which printed `output`.
async fn server(pod: Value, output: &'static str) -> Server {
    Server::start(move |asked: &ReceivedRequest| {
        let (method, path) = asked.line.split_once(' ').unwrap();
        match (method, path) {
            ("GET", path) if path.contains("/log?") => Reply::Json(200, json!(output)),
            ("GET", path) if path.ends_with("etcd-cp-1") => Reply::Json(200, json!({"metadata": {"name": "etcd-cp-1"}, "spec": {"containers": [{"name": "etcd", "image": "mirror/etcd:3.5"}]}})),
            ("GET", _) if pod.is_null() => Reply::Json(404, json!({"reason": "NotFound"})),
            ("GET", _) => Reply::Json(200, pod.clone()),
            ("POST", _) => Reply::Json(409, json!({"reason": "AlreadyExists"})),
            _ => Reply::Json(200, json!({})),
        }
    })
    .await
}

fn methods(server: &Server) -> Vec<String> {
    server.lines().iter().map(|it| it.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_pod_is_started_once_although_the_answer_was_lost() {
    // The server has the etcd pod of the node, and no pod of an earlier call.
    let server = Server::start(|asked: &ReceivedRequest| match asked.line.as_str() {
        "GET /api/v1/namespaces/kube-system/pods/etcd-cp-1" => Reply::Json(200, json!({"metadata": {"name": "etcd-cp-1"}, "spec": {"containers": [{"name": "etcd", "image": "mirror/etcd:3.5"}]}})),
        line if line.starts_with("GET") => Reply::Json(404, json!({"reason": "NotFound"})),
        _ => Reply::Json(409, json!({"reason": "AlreadyExists"})),
    })
    .await;
    assert_eq!(etcd::members(&server.client(), "cp-1").await.unwrap(), Progress::Pending);
    assert_eq!(methods(&server), ["GET", "GET", "POST"]);
    let spec = &server.asked()[2].body["spec"];
    assert_eq!(
        (&spec["nodeName"], &spec["containers"][0]["image"]),
        (&json!("cp-1"), &json!("mirror/etcd:3.5"))
    );
    let words = spec["containers"][0]["command"].as_array().unwrap();
    assert_eq!(words[words.len() - 2..], [json!("member"), json!("list")]);
}

#[tokio::test]
async fn an_outcome_is_returned_and_its_pod_deleted() {
    let output = "{\"header\":{},\"members\":[{\"ID\":42,\"name\":\"cp-1\",\"peerURLs\":[\"https://10.0.0.1:2380\"]}]}\n";
    let server = server(pod("2026-01-01T00:00:00Z", "Succeeded"), output).await;
    let Progress::Done(members) = etcd::members(&server.client(), "cp-1").await.unwrap() else {
        panic!("it has ended");
    };
    assert_eq!((members[0].id, members[0].name.as_str()), (MemberId(42), "cp-1"));
    let last = server.asked().pop().unwrap();
    assert_eq!(last.line, format!("DELETE {LIST}?gracePeriodSeconds=0"));
    assert_eq!(last.body["preconditions"], json!({"uid": "u"}));
}

#[tokio::test]
async fn a_running_pod_is_kept_and_a_hanging_one_deleted() {
    let young = server(pod("2026-01-01T00:00:00Z", "Pending"), "").await;
    assert_eq!(etcd::members(&young.client(), "cp-1").await.unwrap(), Progress::Pending);
    assert_eq!(methods(&young), ["GET"]);
    let old = server(pod("2025-12-31T23:50:00Z", "Pending"), "").await;
    let error = etcd::members(&old.client(), "cp-1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "etcdctl on cp-1: it did not end within 120 s: ContainerCreating"
    );
    assert!(error.is_transient());
    assert_eq!(methods(&old), ["GET", "DELETE"]);
}

#[tokio::test]
async fn an_old_outcome_is_discarded() {
    let server = server(pod("2025-12-31T23:50:00Z", "Succeeded"), "{\"members\":[]}").await;
    assert_eq!(etcd::members(&server.client(), "cp-1").await.unwrap(), Progress::Pending);
    assert_eq!(methods(&server), ["GET", "DELETE"]);
}

#[tokio::test]
async fn a_pod_whose_container_never_started_reports_why() {
    let server = Server::start(|asked: &ReceivedRequest| match asked.line.split_once(' ').unwrap() {
        // The wording of Kubernetes 1.20.
        ("GET", path) if path.contains("/log?") => Reply::Json(400, json!({"reason": "BadRequest", "message": "container \"etcdctl\" in pod \"p\" is waiting to start: ContainerCreating"})),
        ("GET", _) => {
            let mut late = pod("2026-01-01T00:00:00Z", "Failed");
            late["status"]["reason"] = json!("DeadlineExceeded");
            Reply::Json(200, late)
        }
        _ => Reply::Json(200, json!({})),
    })
    .await;
    let error = etcd::members(&server.client(), "cp-1").await.unwrap_err();
    assert_eq!(error.to_string(), "etcdctl on cp-1: DeadlineExceeded");
    assert!(error.is_transient());
    assert_eq!(methods(&server), ["GET", "GET", "DELETE"]);
}

#[tokio::test]
async fn a_pod_on_another_member_is_replaced() {
    let mut elsewhere = pod("2026-01-01T00:00:00Z", "Running");
    elsewhere["spec"]["nodeName"] = json!("cp-2");
    let server = server(elsewhere, "").await;
    let ended = etcd::remove(&server.client(), "cp-1", MemberId(42)).await.unwrap();
    assert_eq!(ended, Progress::Pending);
    assert_eq!(server.lines()[1], format!("DELETE {REMOVE}?gracePeriodSeconds=0"));
}

#[tokio::test]
async fn a_missing_member_counts_as_removed_and_a_refusal_is_reported() {
    let failed = || pod("2026-01-01T00:00:00Z", "Failed");
    let gone =
        server(failed(), "{\"level\":\"warn\"}\nError: etcdserver: member not found\n").await;
    let ended = etcd::remove(&gone.client(), "cp-1", MemberId(42)).await.unwrap();
    assert_eq!(ended, Progress::Done(()));
    let refused = server(
        failed(),
        "Error: etcdserver: re-configuration failed due to not enough started members\n",
    )
    .await;
    let error = etcd::remove(&refused.client(), "cp-1", MemberId(42)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "etcdctl on cp-1: Error: etcdserver: re-configuration failed due to not enough started members"
    );
}
