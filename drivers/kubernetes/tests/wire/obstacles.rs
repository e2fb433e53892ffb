//! Obstacles of an upgrade, as servers of several versions report them.

use kubernetes::obstacles::{removed_apis, tight_budgets};
use serde_json::json;

use crate::server::{ReceivedRequest, Reply, Server};

#[tokio::test]
async fn budgets_that_permit_no_eviction_are_named() {
    let budget = |name: &str, allowed: i64, pods: i64| json!({"metadata": {"name": name, "namespace": "n"}, "status": {"disruptionsAllowed": allowed, "expectedPods": pods}});
    let all = [budget("tight", 0, 2), budget("loose", 1, 2), budget("unused", 0, 0)];
    for version in ["v1", "v1beta1"] {
        let all = json!({"items": all, "metadata": {"continue": null}});
        let server = Server::start(move |asked: &ReceivedRequest| {
            let path = format!("GET /apis/policy/{version}/poddisruptionbudgets?limit=250");
            match asked.line == path {
                true => Reply::Json(200, all.clone()),
                false => Reply::Json(404, json!({"reason": "NotFound"})),
            }
        });
        let server = server.await;
        assert_eq!(tight_budgets(&server.client()).await.unwrap(), ["n/tight"], "{version}");
    }
}

#[tokio::test]
async fn a_server_without_metrics_names_no_requests() {
    let server = Server::start(|_: &ReceivedRequest| Reply::Json(404, json!({}))).await;
    assert_eq!(removed_apis(&server.client(), 34).await.unwrap(), Vec::<String>::new());
}
