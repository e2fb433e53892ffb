//! Clusters: created, shown, changed and deleted.

use cluster_core::Ident;
use cluster_store::Scope;

use crate::api::Api;

#[tokio::test]
async fn a_cluster_is_created_and_shown_as_magnum_does() {
    let api = Api::start().await;
    let template = api.template("t", r#", "labels": {"kube_tag": "v1.32.1"}"#).await;
    // All fields that `openstack coe cluster create` sends.
    let body = r#"{
        "name": "c", "cluster_template_id": "t", "node_count": 2, "master_count": 3, "keypair": null,
        "create_timeout": 60, "discovery_url": null, "labels": {"dns_zone": "k8s.example"}, "merge_labels": true
    }"#;
    let asked = api.post("/v1/clusters", body).await.has(202);
    let id = asked.json()["uuid"].as_str().unwrap().to_owned();
    asked.is(&format!(r#"{{"uuid": "{id}"}}"#));
    assert_eq!(asked.headers["location"], format!("http://api:9511/v1/clusters/{id}"));

    let brief = format!(
        r#""uuid": "{id}", "name": "c", "cluster_template_id": "{template}", "keypair": null,
           "docker_volume_size": null, "labels": {{"kube_tag": "v1.32.1", "dns_zone": "k8s.example"}},
           "node_count": 2, "master_count": 3, "flavor_id": "m1.large", "master_flavor_id": "m1.large",
           "create_timeout": 60, "status": "CREATE_IN_PROGRESS", "health_status": "UNKNOWN",
           "cluster_id": "{id}",
           "links": [
               {{"href": "http://api:9511/v1/clusters/{id}", "rel": "self"}},
               {{"href": "http://api:9511/clusters/{id}", "rel": "bookmark"}}
           ]"#
    );
    let want = format!(
        r#"{{{brief},
            "status_reason": null, "health_status_reason": {{}}, "api_address": null, "coe_version": "v1.32.1",
            "container_version": null, "discovery_url": null, "node_addresses": [], "master_addresses": [],
            "faults": {{}}, "labels_overridden": {{}}, "labels_added": {{"dns_zone": "k8s.example"}},
            "labels_skipped": {{}}, "fixed_network": null, "fixed_subnet": null, "floating_ip_enabled": true,
            "master_lb_enabled": true, "project_id": "default", "user_id": "anonymous",
            "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null
        }}"#
    );
    api.get(&format!("/v1/clusters/{id}")).await.has(200).is(&want);
    api.get("/v1/clusters/c").await.has(200).is(&want);
    api.get("/v1/clusters").await.has(200).is(&format!(r#"{{"clusters": [{{{brief}}}]}}"#));
    api.get("/v1/clusters/detail").await.has(200).is(&format!(r#"{{"clusters": [{want}]}}"#));
    // `cluster_id` replaces `stack_id` in version 1.13.
    for path in ["/v1/clusters/c", "/v1/clusters"] {
        let old = api.send("GET", path, "container-infra 1.12", "").await.json();
        let old = old.get("clusters").map_or(&old, |all| &all[0]).clone();
        assert!(old.get("cluster_id").is_none() && old.get("stack_id").is_some(), "{old}");
    }
}

#[tokio::test]
async fn fields_that_a_client_leaves_out_come_from_the_template() {
    let api = Api::start().await;
    api.template(
        "t",
        r#", "keypair_id": "k", "labels": {"kube_tag": "v1.32.1", "boot_volume_size": 20}"#,
    )
    .await;
    api.cluster("c", r#", "labels": {"kube_tag": "v1.33.0"}, "flavor_id": "m1.small""#).await;
    let shown = api.get("/v1/clusters/c").await.json();
    assert_eq!((&shown["keypair"], &shown["node_count"]), (&"k".into(), &1.into()));
    assert_eq!(
        (&shown["flavor_id"], &shown["coe_version"]),
        (&"m1.small".into(), &"v1.33.0".into())
    );
    assert_eq!(shown["labels"], serde_json::json!({"kube_tag": "v1.33.0"}));
    assert_eq!(shown["labels_overridden"], serde_json::json!({"kube_tag": "v1.32.1"}));
    assert_eq!(shown["labels_skipped"], serde_json::json!({"boot_volume_size": "20"}));
}

#[tokio::test]
async fn an_impossible_cluster_is_refused_by_field() {
    let api = Api::start().await;
    api.template("t", "").await;
    let check = async |more: &str, words: &str| {
        let body = format!(r#"{{"name": "c", "cluster_template_id": "t"{more}}}"#);
        api.post("/v1/clusters", &body).await.refuses(400, words);
    };
    check(
        r#", "master_count": 2"#,
        "master_count: must be 1, 3 or 5, because etcd needs a majority",
    )
    .await;
    check(
        r#", "master_count": 3, "master_lb_enabled": false"#,
        "master_count: more than one needs master_lb_enabled, or the label dns_zone for a DNS name that leads to all of them",
    )
    .await;
    check(
        r#", "fixed_network": "n""#,
        "fixed_subnet: set both fixed_network and fixed_subnet, or neither",
    )
    .await;
    check(r#", "node_count": 1001"#, "node_count: must be at most 1000").await;
    check(
        r#", "discovery_url": "http://x""#,
        "discovery_url: must be null: etcd needs no discovery service",
    )
    .await;
    check(
        r#", "labels": {"kube_tag": "v1.5.0"}"#,
        "labels/kube_tag: v1.5.0 is not supported: choose v1.20 to v1.37",
    )
    .await;
    let nowhere = r#"{"cluster_template_id": "nowhere"}"#;
    api.post("/v1/clusters", nowhere)
        .await
        .refuses(404, "ClusterTemplate nowhere could not be found.");
    api.send("POST", "/v1/clusters", "container-infra 1.9", nowhere)
        .await
        .refuses(400, "cluster_template_id: ClusterTemplate nowhere could not be found.");
    api.send("POST", "/v1/clusters", "", r#"{"cluster_template_id": "t", "node_count": 0}"#)
        .await
        .refuses(400, "node_count: must be at least 1 before version 1.10");
    api.cluster("c", r#", "node_count": 0"#).await;
    api.post("/v1/clusters", r#"{"name": "c", "cluster_template_id": "t"}"#)
        .await
        .refuses(409, "name: \"c\" is already in use");
}

#[tokio::test]
async fn a_label_that_nobody_documents_is_accepted_with_a_warning() {
    let api = Api::start().await;
    api.template("t", "").await;
    let said = |names: &str| {
        format!("clusterd does not know these labels, so they have no effect: {names}")
    };
    let body = r#"{"name": "c", "cluster_template_id": "t", "labels": {"colour": "red"}}"#;
    let plan = api.post("/bedplate/v1/plan", body).await.has(200).json();
    assert_eq!(plan["warnings"], serde_json::json!([said("labels/colour")]));
    api.post("/v1/clusters", body).await.has(202);
    let shown = api.get("/v1/clusters/c").await.json();
    assert_eq!(shown["labels"], serde_json::json!({"colour": "red"}));
    let group = r#"{"name": "g", "labels": {"shape": "round"}, "merge_labels": true}"#;
    api.post("/v1/clusters/c/nodegroups", group).await.has(202);
    api.post("/v1/clusters/c/nodegroups", r#"{"name": "h"}"#).await.has(202);
    let events = api.get("/bedplate/v1/clusters/c/events").await.json();
    let warnings = events["events"].as_array().unwrap().iter();
    let warnings: Vec<_> = warnings
        .filter(|it| it["reason"] == "LabelsUnknown" && it["severity"] == "warning")
        .map(|it| it["message"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(warnings, [said("labels/colour"), said("labels/colour, labels/shape")]);
}

#[tokio::test]
async fn a_patch_changes_only_the_node_count() {
    let api = Api::start().await;
    let id = api.small().await;
    let asked = api
        .patch("/v1/clusters/c", r#"[{"op": "replace", "path": "/node_count", "value": 3}]"#)
        .await;
    asked.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    assert_eq!(api.get("/v1/clusters/c").await.json()["node_count"], 3);
    api.patch("/v1/clusters/c", r#"[{"op": "remove", "path": "/node_count"}]"#).await.has(202);
    assert_eq!(api.get("/v1/clusters/c").await.json()["node_count"], 1);
    api.patch("/v1/clusters/c", r#"[{"op": "replace", "path": "/name", "value": "d"}]"#)
        .await
        .refuses(
            400,
            "/name: cannot be changed; /node_count, /health_status and /health_status_reason can, and node groups have their own routes",
        );
}

#[tokio::test]
async fn a_cluster_that_does_not_exist_is_missed_before_a_bad_request_is_refused() {
    let api = Api::start().await;
    let bad = r#"[{"op": "replace", "path": "/name", "value": "d"}]"#;
    let resize = r#"{"node_count": 2, "nodes_to_remove": ["x"]}"#;
    for (method, path, body) in [
        ("PATCH", "/v1/clusters/nobody", bad),
        ("PATCH", "/v1/clusters/nobody?rollback=true", bad),
        ("PATCH", "/v1/clusters/nobody/nodegroups/x", bad),
        ("POST", "/v1/clusters/nobody/actions/resize", resize),
        ("GET", "/v1/certificates/nobody?ca_cert_type=colour", ""),
    ] {
        let answer = api.send(method, path, crate::api::NEWEST, body).await;
        answer.refuses(404, "Cluster nobody could not be found.");
    }
}

#[tokio::test]
async fn an_auto_healer_reports_the_health_that_clusterd_cannot_see() {
    let api = Api::start().await;
    api.small().await;
    // The patch that magnum-auto-healer sends.
    let patch = r#"[
        {"op": "replace", "path": "/health_status", "value": "UNHEALTHY"},
        {"op": "replace", "path": "/health_status_reason", "value": {"api": "ok", "c-worker-0.Ready": "False"}}
    ]"#;
    let ident: Ident = "c".parse().unwrap();
    let read = async || api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    api.patch("/v1/clusters/c", patch).await.has(202);
    let reported = read().await;
    api.patch("/v1/clusters/c", patch).await.has(202);
    assert_eq!(read().await, reported, "the healer repeats its report");
    let shown = api.get("/v1/clusters/c").await.json();
    assert_eq!(shown["health_status"], "UNHEALTHY");
    let reason = serde_json::json!({"api": "ok", "c-worker-0.Ready": "False"});
    assert_eq!(shown["health_status_reason"], reason);
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert_eq!(events.matches("HealthReported").count(), 1, "{events}");
    let patch = r#"[{"op": "replace", "path": "/health_status", "value": "FINE"}]"#;
    let why = "health_status: must be HEALTHY, UNHEALTHY or UNKNOWN";
    api.patch("/v1/clusters/c", patch).await.refuses(400, why);
    let patch = r#"[{"op": "remove", "path": "/health_status"}]"#;
    api.patch("/v1/clusters/c", patch).await.has(202);
    assert_eq!(api.get("/v1/clusters/c").await.json()["health_status"], "UNKNOWN");
}

#[tokio::test]
async fn a_rollback_is_refused_by_name() {
    let api = Api::start().await;
    api.small().await;
    let patch = r#"[{"op": "replace", "path": "/node_count", "value": 3}]"#;
    api.patch("/v1/clusters/c?rollback=False", patch).await.has(202);
    let why = "rollback: clusterd retries a failed update and does not roll it back: set /node_count to the former number";
    api.patch("/v1/clusters/c?rollback=True", patch).await.refuses(400, why);
    api.patch("/v1/clusters/c?zebra=1", patch).await.refuses(400, "zebra: unknown parameter");
    let old =
        api.send("PATCH", "/v1/clusters/c?rollback=False", "container-infra 1.2", patch).await;
    old.refuses(400, "rollback: unknown parameter");
}

#[tokio::test]
async fn a_cluster_that_is_being_deleted_cannot_be_changed() {
    let api = Api::start().await;
    api.small().await;
    api.delete("/v1/clusters/c").await.has(204);
    assert_eq!(api.get("/v1/clusters/c").await.json()["status"], "DELETE_IN_PROGRESS");
    api.delete("/v1/clusters/c").await.has(204);
    api.patch("/v1/clusters/c", r#"[{"op": "replace", "path": "/node_count", "value": 3}]"#)
        .await
        .refuses(409, "cluster c is being deleted");
    api.delete("/v1/clusters/nobody").await.refuses(404, "Cluster nobody could not be found.");
}
