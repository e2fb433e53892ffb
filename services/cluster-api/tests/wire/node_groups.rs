//! Node groups.

use cluster_core::{MOST_GROUPS, NodeGroup, NodeGroupUuid};
use cluster_store::{ClusterChange, Scope};

use crate::api::Api;

#[tokio::test]
async fn the_default_groups_come_with_the_cluster() {
    let api = Api::start().await;
    api.template("t", "").await;
    api.cluster("c", r#", "node_count": 2, "master_count": 3"#).await;
    // The OpenStack client sends the trailing slash.
    let listed = api.get("/v1/clusters/c/nodegroups/").await.has(200).json();
    let groups = listed["nodegroups"].as_array().unwrap();
    let (master, worker) =
        (groups[0]["uuid"].as_str().unwrap(), groups[1]["uuid"].as_str().unwrap());
    let group = |id: &str, name: &str, count: u32, role: &str| {
        let least = u32::from(role == "master");
        format!(
            r#"{{"uuid": "{id}", "name": "{name}", "flavor_id": "m1.large", "image_id": "fcos", "node_count": {count},
                 "role": "{role}", "is_default": true, "status": "CREATE_IN_PROGRESS", "stack_id": null,
                 "min_node_count": {least}, "max_node_count": null}}"#
        )
    };
    let want = [
        group(master, "default-master", 3, "master"),
        group(worker, "default-worker", 2, "worker"),
    ];
    api.get("/v1/clusters/c/nodegroups")
        .await
        .is(&format!(r#"{{"nodegroups": [{}]}}"#, want.join(",")));
    let by_name =
        api.get("/v1/clusters/c/nodegroups?sort_key=name&sort_dir=desc&limit=1").await.json();
    assert_eq!(by_name["nodegroups"][0]["name"], "default-worker");
    assert!(by_name["next"].as_str().unwrap().contains("&marker="), "{by_name}");
    let masters = api.get("/v1/clusters/c/nodegroups?role=master").await.json();
    assert_eq!(masters["nodegroups"].as_array().unwrap().len(), 1);
    api.delete("/v1/clusters/c/nodegroups/default-worker").await.refuses(
        400,
        "node group default-worker is a default group: it can only be deleted with its cluster",
    );
}

#[tokio::test]
async fn a_group_is_created_changed_and_deleted() {
    let api = Api::start().await;
    let cluster = api.small().await;
    // The body that `openstack coe nodegroup create` sends.
    let body = r#"{
        "name": "gpu", "node_count": 2, "min_node_count": 1, "max_node_count": null, "role": "worker",
        "flavor_id": "g1.large", "labels": {"availability_zone": "az-2"}, "merge_labels": true,
        "node_labels": {"example.com/gpu": "a100"}, "node_taints": [{"key": "gpu", "value": "", "effect": "NoSchedule"}]
    }"#;
    let asked = api.post("/v1/clusters/c/nodegroups/", body).await.has(202);
    let id = asked.json()["uuid"].as_str().unwrap().to_owned();
    let want = format!(
        r#"{{
            "uuid": "{id}", "name": "gpu", "flavor_id": "g1.large", "image_id": "fcos", "node_count": 2,
            "role": "worker", "is_default": false, "status": "CREATE_IN_PROGRESS", "stack_id": null,
            "cluster_id": "{cluster}", "project_id": "default", "docker_volume_size": null, "min_node_count": 1,
            "max_node_count": null, "labels": {{"availability_zone": "az-2"}}, "labels_overridden": {{}},
            "labels_added": {{"availability_zone": "az-2"}}, "labels_skipped": {{}}, "status_reason": null,
            "version": "v1.34.1", "node_addresses": [], "node_labels": {{"example.com/gpu": "a100"}},
            "node_taints": [{{"key": "gpu", "value": "", "effect": "NoSchedule"}}],
            "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "links": [
                {{"href": "http://api:9511/v1/clusters/{cluster}/nodegroups/{id}", "rel": "self"}},
                {{"href": "http://api:9511/clusters/{cluster}/nodegroups/{id}", "rel": "bookmark"}}
            ]
        }}"#
    );
    asked.is(&want);
    api.get("/v1/clusters/c/nodegroups/gpu").await.has(200).is(&want);
    assert_eq!(api.get("/v1/clusters/c").await.json()["node_count"], 3);

    let patch = r#"[{"op": "replace", "path": "/max_node_count", "value": 4}]"#;
    let changed = api.patch("/v1/clusters/c/nodegroups/gpu", patch).await.has(202).json();
    assert_eq!(changed["max_node_count"], 4);
    api.post("/v1/clusters/c/actions/resize", r#"{"node_count": 5, "nodegroup": "gpu"}"#)
        .await
        .refuses(400, "node_count: is more than max_node_count, 4");
    api.delete("/v1/clusters/c/nodegroups/gpu").await.has(204);
    api.get("/v1/clusters/c/nodegroups/gpu")
        .await
        .refuses(404, "Nodegroup gpu could not be found.");
}

#[tokio::test]
async fn a_new_group_reuses_no_member_names_of_a_deleted_one() {
    let api = Api::start().await;
    api.small().await;
    let names = async || {
        let reported = api.get("/bedplate/v1/clusters/c/machines").await.has(200).json();
        let names = reported["machines"].as_array().unwrap().iter().map(|it| it["name"].clone());
        names.filter(|it| it.as_str().unwrap().starts_with("gpu")).collect::<Vec<_>>()
    };
    let ask = r#"{"name": "gpu", "node_count": 2, "flavor_id": "g1.large"}"#;
    api.post("/v1/clusters/c/nodegroups", ask).await.has(202);
    assert_eq!(names().await, ["gpu-0", "gpu-1"]);
    api.delete("/v1/clusters/c/nodegroups/gpu").await.has(204);
    let ask = r#"{"name": "gpu", "node_count": 1, "flavor_id": "m1.tiny"}"#;
    api.post("/v1/clusters/c/nodegroups", ask).await.has(202);
    assert_eq!(names().await, ["gpu-2"]);
}

#[tokio::test]
async fn an_impossible_group_is_refused_by_field() {
    let api = Api::start().await;
    api.small().await;
    let check = async |more: &str, status: u16, words: &str| {
        let body = format!(r#"{{"name": "g"{more}}}"#);
        api.post("/v1/clusters/c/nodegroups", &body).await.refuses(status, words);
    };
    check(r#", "role": "master""#, 400, "role: a cluster has only one control plane").await;
    check(
        r#", "node_count": 3, "max_node_count": 2"#,
        400,
        "node_count: is more than max_node_count, 2",
    )
    .await;
    check(
        r#", "node_taints": [{"key": "a", "effect": "Sometimes"}]"#,
        400,
        "node_taints: effect must be NoSchedule, PreferNoSchedule or NoExecute",
    )
    .await;
    check(
        r#", "node_labels": {"a b": "c"}"#,
        400,
        "node_labels: \"a b\" is not a valid Kubernetes label",
    )
    .await;
    api.post("/v1/clusters/c/nodegroups", r#"{"name": "default-worker"}"#)
        .await
        .refuses(409, "A node group with name default-worker already exists in the cluster c.");
    api.patch(
        "/v1/clusters/c/nodegroups/default-worker",
        r#"[{"op": "replace", "path": "/name", "value": "x"}]"#,
    )
    .await
    .refuses(400, "name: cannot be changed");
    api.patch("/v1/clusters/c/nodegroups/default-worker", r#"[{"op": "remove", "path": "/name"}]"#)
        .await
        .refuses(400, "name: cannot be changed");
}

#[tokio::test]
async fn a_patch_changes_the_labels_and_taints_of_nodes() {
    let api = Api::start().await;
    api.small().await;
    let body = r#"{"name": "gpu", "node_labels": {"tier": "a", "old": "x"}}"#;
    api.post("/v1/clusters/c/nodegroups", body).await.has(202);
    let path = "/v1/clusters/c/nodegroups/gpu";
    let patch = r#"[
        {"op": "replace", "path": "/node_labels/tier", "value": "b"}, {"op": "remove", "path": "/node_labels/old"},
        {"op": "replace", "path": "/node_taints", "value": [{"key": "gpu", "effect": "NoSchedule"}]}
    ]"#;
    let changed = api.patch(path, patch).await.has(202).json();
    assert_eq!(changed["node_labels"], serde_json::json!({"tier": "b"}));
    let taints = serde_json::json!([{"key": "gpu", "value": "", "effect": "NoSchedule"}]);
    assert_eq!(changed["node_taints"], taints);
    let patch = r#"[{"op": "remove", "path": "/node_taints"}, {"op": "replace", "path": "/node_labels", "value": {}}]"#;
    let changed = api.patch(path, patch).await.has(202).json();
    assert_eq!(
        (&changed["node_labels"], &changed["node_taints"]),
        (&serde_json::json!({}), &serde_json::json!([]))
    );
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert_eq!(events.matches("NodeGroupChangeRequested").count(), 2, "{events}");

    let label = r#"[{"op": "add", "path": "/node_labels", "value": {"a b": "c"}}]"#;
    api.patch(path, label)
        .await
        .refuses(400, "node_labels: \"a b\" is not a valid Kubernetes label");
    let label = r#"[{"op": "add", "path": "/node_labels", "value": {"a": "b"}}]"#;
    let why = "node_labels: a control plane cannot have any: its nodes have those of kubeadm";
    api.patch("/v1/clusters/c/nodegroups/default-master", label).await.refuses(400, why);
    // As in Magnum, only the route needs a version.
    api.send("PATCH", path, "container-infra 1.9", label).await.has(202);
    let empty = r#"{"name": "empty", "node_count": 0}"#;
    api.send("POST", "/v1/clusters/c/nodegroups", "container-infra 1.9", empty).await.has(202);
}

#[tokio::test]
async fn a_cluster_has_a_bounded_number_of_node_groups() {
    let api = Api::start().await;
    api.small().await;
    let ident = "c".parse().unwrap();
    let cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    let groups = api.store.groups_of(cluster.id).await.unwrap();
    let another = |number: usize| NodeGroup {
        id: NodeGroupUuid::new_v4(),
        name: format!("g{number}").parse().unwrap(),
        machines: Default::default(),
        is_default: false,
        ..groups[1].clone()
    };
    let added = (groups.len()..MOST_GROUPS - 1).map(another).collect();
    api.store.change_cluster(&ClusterChange { added, ..ClusterChange::of(cluster) }).await.unwrap();
    let path = "/v1/clusters/c/nodegroups";
    api.post(path, r#"{"name": "last", "node_count": 1}"#).await.has(202);
    let why = "the cluster has 100 node groups, and 100 is the limit: delete one first";
    api.post(path, r#"{"name": "more", "node_count": 1}"#).await.refuses(409, why);
}
