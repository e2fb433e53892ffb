//! Malformed requests to every route; see the crate `contract`.

use contract::InProcessApi;
use contract::hostile::HostileRequests;
use serde_json::{Value, json};

use crate::api::Api;

/// Every route that reads a body, with a body that it accepts.
fn readers() -> Vec<(&'static str, String, Value)> {
    let operation = |path: &str| json!([{"op": "add", "path": path, "value": 1}]);
    let all = [
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
    ];
    all.map(|(method, path, body)| (method, path.to_owned(), body)).into()
}

/// Runs a check on an API with one cluster.
async fn check(check: impl AsyncFn(&HostileRequests)) {
    let api = Api::start().await;
    api.small().await;
    check(&HostileRequests {
        api: InProcessApi::clone(&api),
        readers: readers(),
        largest_body: 256 << 10,
        ignore_unknown_fields: &[],
        any_type: &["value"],
        query_names: "(limit|marker|sort_key|sort_dir|role|project_id|all_tenants|ca_cert_type|zz)",
    })
    .await;
}

contract::hostile_tests!(check);
