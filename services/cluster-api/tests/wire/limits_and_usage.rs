//! Usage and limits of projects and users, and the refusal of requests that exceed them.

use cluster_core::{Cluster, Ident};
use cluster_store::{ClusterChange, Scope};
use database::scratch::Scratch;
use openstack_emulator::{Act, Emulator, Rule, Settings};
use serde_json::{Value, json};

use crate::api::Api;

async fn cloud() -> (Emulator, Api) {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let api = Api::in_cloud(&emulator.cloud).await;
    api.template("t", "").await;
    (emulator, api)
}

impl Api {
    pub(crate) async fn limit(&self, path: &str, limits: &Value) -> Value {
        let path = format!("/bedplate/v1/quotas/{path}");
        self.send("PUT", &path, "", &limits.to_string()).await.has(200).json()
    }

    /// Usage and limit of one resource: of the project and of the user.
    async fn account(&self, resource: &str) -> (Value, Value) {
        let reported = self.get("/bedplate/v1/quotas").await.has(200).json();
        (reported["project"][resource].clone(), reported["user"][resource].clone())
    }

    async fn uses(&self, resource: &str) -> Value {
        self.account(resource).await.0["used"].clone()
    }
}

#[tokio::test]
async fn usage_and_limits_are_shown() {
    let (_emulator, api) = cloud().await;
    api.cluster("c", r#", "node_count": 2, "docker_volume_size": 10"#).await;
    let row = |used: u64, limit: i64| json!({"used": used, "limit": limit});
    let reported = api.get("/bedplate/v1/quotas").await.has(200).json();
    assert_eq!(
        (&reported["project_id"], &reported["user_id"]),
        (&json!("default"), &json!("anonymous"))
    );
    let each = |clusters: i64| {
        json!({
            "clusters": row(1, clusters), "nodes": row(3, -1), "vms": row(0, -1), "vcpus": row(12, -1),
            "ram_mib": row(24576, -1), "disk_gib": row(270, -1), "gpus": row(0, -1),
            "floating_ips": row(4, -1), "lease_seconds": {"limit": -1},
        })
    };
    assert_eq!((&reported["project"], &reported["user"]), (&each(20), &each(-1)));

    let set = api.limit("default", &json!({"nodes": 5, "lease_seconds": 3600})).await;
    assert_eq!(set["project"]["nodes"], row(3, 5));
    assert_eq!(set["project"]["clusters"], row(1, 20));
    assert_eq!(set["project"]["lease_seconds"], json!({"limit": 3600}));
    let granted = api.limit("default/users/anonymous", &json!({"clusters": 2})).await;
    assert_eq!(
        (&granted["user_id"], &granted["user"]["clusters"]),
        (&json!("anonymous"), &row(1, 2))
    );
    let other = api.get("/bedplate/v1/quotas?project_id=p&user_id=ann").await.has(200).json();
    assert_eq!((&other["project"]["clusters"], &other["user_id"]), (&row(0, 20), &json!("ann")));
}

#[tokio::test]
async fn setting_one_limit_keeps_the_others() {
    let api = Api::start().await;
    let patch = async |path: &str, body: &str| {
        api.send("PATCH", &format!("/bedplate/v1/quotas/{path}"), "", body).await
    };
    for (path, account) in [("p", "project"), ("p/users/ann", "user")] {
        api.limit(path, &json!({"nodes": 5, "gpus": 2})).await;
        let reported = patch(path, r#"{"vms": 3, "gpus": -1}"#).await.has(200).json();
        let limit = |reported: &Value, name: &str| reported[account][name]["limit"].clone();
        let limits = ["nodes", "vms", "gpus"].map(|name| limit(&reported, name));
        assert_eq!(limits, [json!(5), json!(3), json!(-1)], "{reported}");
        let reported = patch(path, r#"{"nodes": null}"#).await.has(200).json();
        assert_eq!((limit(&reported, "nodes"), limit(&reported, "vms")), (json!(-1), json!(3)));
        assert!(
            patch(path, r#"{"colours": 1}"#)
                .await
                .has(400)
                .text
                .contains("not a resource with a limit")
        );
        let reported = patch(path, "{}").await.has(200).json();
        assert_eq!(limit(&reported, "vms"), json!(3), "what was refused changed nothing");
    }
    patch("a%2Fb", "{}").await.has(400);
}

#[tokio::test]
async fn invalid_limits_are_refused_by_name() {
    let api = Api::start().await;
    let put = async |path: &str, body: &str| {
        api.send("PUT", &format!("/bedplate/v1/quotas/{path}"), "", body).await.has(400).text
    };
    assert!(put("p", r#"{"colours": 1}"#).await.contains("is not a resource with a limit"));
    assert!(put("p", r#"{"gpus": -2}"#).await.contains("gpus: -2 is not a limit"));
    assert!(put("p", r#"{"gpus": null}"#).await.contains("gpus"));
    assert!(put("a%2Fb", "{}").await.contains("project_id: must be the id of a project"));
    assert!(put("p/users/%0A", "{}").await.contains("user_id: must be the id of a user"));
}

#[tokio::test]
async fn magnum_s_quota_is_the_limit_of_clusters() {
    let (_emulator, api) = cloud().await;
    let body = r#"{"project_id": "default", "resource": "Cluster", "hard_limit": 1}"#;
    api.post("/v1/quotas", body).await.has(201);
    api.cluster("c", "").await;
    let words =
        "quota exceeded: clusters: project default uses 1 of 1, and the request needs 1 more";
    api.post("/v1/clusters", r#"{"name": "d", "cluster_template_id": "t"}"#)
        .await
        .refuses(403, words);
    api.limit("default", &json!({"clusters": 2, "nodes": 9})).await;
    let listed = api.get("/v1/quotas").await.json();
    assert_eq!(listed["quotas"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(api.get("/v1/quotas/default/Cluster").await.json()["hard_limit"], 2);
    api.cluster("d", "").await;
    // A deletion frees the usage only once all cloud objects are gone.
    api.delete("/v1/clusters/d").await.has(204);
    assert_eq!(api.uses("clusters").await, 2);
}

#[tokio::test]
async fn growth_beyond_a_limit_is_refused_and_shrinking_never_is() {
    let (_emulator, api) = cloud().await;
    api.cluster("c", "").await;
    api.limit("default/users/anonymous", &json!({"vcpus": 12})).await;
    let resize = async |count: u32| {
        let body = format!(r#"{{"node_count": {count}}}"#);
        api.post("/v1/clusters/c/actions/resize", &body).await
    };
    let whose = "user anonymous in project default uses";
    let words = format!("quota exceeded: vcpus: {whose} 8 of 12, and the request needs 8 more");
    resize(3).await.refuses(403, &words);
    resize(2).await.has(202);
    let words = format!("quota exceeded: vcpus: {whose} 12 of 12, and the request needs 1 more");
    let small = r#"{"name": "small", "flavor_id": "m1.small"}"#;
    api.post("/v1/clusters/c/nodegroups", small).await.refuses(403, &words);
    let patch = r#"[{"op": "replace", "path": "/node_count", "value": 4}]"#;
    api.patch("/v1/clusters/c", patch).await.has(403);
    assert_eq!(api.uses("nodes").await, 3);

    api.limit("default/users/anonymous", &json!({"vcpus": 1})).await;
    resize(1).await.has(202);
    assert_eq!(api.uses("vcpus").await, 8);
    api.limit("default/users/anonymous", &json!({"vcpus": 9})).await;
    api.post("/v1/clusters/c/nodegroups", small).await.has(202);
    assert_eq!(api.uses("vcpus").await, 9);
    api.delete("/v1/clusters/c/nodegroups/small").await.has(204);
    assert_eq!(api.uses("vcpus").await, 8);
}

#[tokio::test]
async fn an_upgrade_to_larger_flavors_has_to_fit_into_the_limits() {
    let (_emulator, api) = cloud().await;
    let small = r#"{"name": "small", "image_id": "fcos", "coe": "kubernetes", "external_network_id": "public",
                    "flavor_id": "m1.small", "master_lb_enabled": true}"#;
    api.post("/v1/clustertemplates", small).await.has(201);
    let body = r#"{"name": "c", "cluster_template_id": "small"}"#;
    api.post("/v1/clusters", body).await.has(202);
    let ident = Ident::Name("c".parse().unwrap());
    let cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    let completed_at = Some(cluster.asked_at);
    let complete = ClusterChange::of(Cluster { completed_at, ..cluster });
    api.store.change_cluster(&complete).await.unwrap();

    api.limit("default", &json!({"vcpus": 7})).await;
    let words = "quota exceeded: vcpus: project default uses 2 of 7, and the request needs 6 more";
    let upgrade = r#"{"cluster_template": "t"}"#;
    api.post("/v1/clusters/c/actions/upgrade", upgrade).await.refuses(403, words);
    let plan = api.post("/bedplate/v1/clusters/c/upgrade/plan", upgrade).await.has(200).json();
    assert_eq!((&plan["fits"], &plan["fits_reason"]), (&json!(false), &json!(words)));
    api.limit("default", &json!({"vcpus": 8})).await;
    api.post("/v1/clusters/c/actions/upgrade", upgrade).await.has(202);
}

#[tokio::test]
async fn gpus_are_counted_from_the_extra_specs_of_flavors() {
    let (_emulator, api) = cloud().await;
    api.limit("default", &json!({"gpus": 1})).await;
    api.cluster("c", r#", "flavor_id": "g1.small", "master_flavor_id": "m1.large""#).await;
    assert_eq!(api.account("gpus").await.0, json!({"used": 1, "limit": 1}));
    let words = "quota exceeded: gpus: project default uses 1 of 1, and the request needs 1 more";
    api.post("/v1/clusters/c/actions/resize", r#"{"node_count": 2}"#).await.refuses(403, words);
}

#[tokio::test]
async fn a_request_with_unknown_sizes_is_refused_if_a_limit_needs_them() {
    const SMALL: &str = r#"{"name": "c", "cluster_template_id": "t"}"#;
    let (emulator, api) = cloud().await;
    api.limit("default", &json!({"ram_mib": 65536})).await;
    let huge = r#"{"name": "c", "cluster_template_id": "t", "flavor_id": "huge"}"#;
    let words = "flavor_id: the cloud has no \"huge\" that clusterd may use";
    api.post("/v1/clusters", huge).await.refuses(400, words);
    emulator.cloud.misbehave(Rule::new("GET", "/compute/**/flavors/detail", Act::Close));
    let away = Api::in_cloud(&emulator.cloud).await;
    away.template("t", "").await;
    away.limit("default", &json!({"ram_mib": 65536})).await;
    let refused = away.post("/v1/clusters", SMALL).await.has(503).text;
    assert!(refused.contains("project default has a limit of ram_mib"), "{refused}");
    assert!(refused.contains("no answer from the compute service"), "{refused}");
    // The sizes of flavors are not needed for a resource without a limit.
    away.limit("default", &json!({"nodes": 2})).await;
    away.cluster("c", "").await;
    assert_eq!((away.uses("nodes").await, away.uses("ram_mib").await), (json!(2), json!(0)));
}

#[tokio::test]
async fn a_plan_checks_the_limits_of_clusterd_first_and_then_the_cloud_quota() {
    let (emulator, api) = cloud().await;
    emulator.cloud.set_quota("tenant-a", "instances", 1);
    api.limit("default", &json!({"nodes": 1})).await;
    let body = r#"{"name": "c", "cluster_template_id": "t"}"#;
    let why = async || {
        let plan = api.post("/bedplate/v1/plan", body).await.has(200).json();
        assert_eq!(plan["fits"], json!(false));
        plan["fits_reason"].as_str().unwrap().to_owned()
    };
    let ours = "quota exceeded: nodes: project default uses 0 of 1, and the request needs 2 more";
    assert_eq!(why().await, ours);
    api.post("/v1/clusters", body).await.refuses(403, ours);
    api.limit("default", &json!({})).await;
    let clouds = "the project's quota in the cloud is too small; needed: 2 instances (1 free)";
    assert_eq!(why().await, clouds);
}

async fn the_last_ten_clusters(scratch: Scratch) {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let api = Api::in_cloud_on(&emulator.cloud, &scratch.url).await;
    api.template("t", "").await;
    api.limit("default", &json!({"clusters": 11, "vcpus": 100})).await;
    api.cluster("first", "").await;
    emulator.cloud.forget_calls();
    let asked = (0..200).map(|n| {
        let body = format!(r#"{{"name": "c{n}", "cluster_template_id": "t"}}"#);
        let api = &api;
        async move { api.post("/v1/clusters", &body).await }
    });
    let answers = futures::future::join_all(asked).await;
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(202), count(403)), (10, 190));
    assert_eq!((api.uses("clusters").await, api.uses("vcpus").await), (json!(11), json!(88)));
    let flavors = emulator.cloud.count(|call| call.path.ends_with("/flavors/detail"));
    assert!(flavors <= 1, "the cloud was asked {flavors} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_of_two_hundred_requests_for_the_last_ten_clusters_succeed_on_sqlite() {
    the_last_ten_clusters(Scratch::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_of_two_hundred_requests_for_the_last_ten_clusters_succeed_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    the_last_ten_clusters(scratch).await;
}
