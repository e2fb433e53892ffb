//! Upgrades: Magnum's action, and Bedplate's routes that plan, pause, resume and roll back.

use cluster_core::{Cluster, Ident};
use cluster_store::{ClusterChange, SCHEMA, Scope, Store};
use database::scratch::Scratch;
use database::{Database, WriteKind};
use serde_json::{Value, json};

use crate::api::Api;

/// Makes a template `t` of v1.33.2, a complete cluster `c` of it, and a template `t2` of v1.34.1. Returns the cluster's id and that of `t2`.
async fn upgradable(api: &Api) -> (String, String) {
    api.template("t", r#", "labels": {"kube_tag": "v1.33.2"}"#).await;
    let id = api.cluster("c", r#", "master_count": 3, "node_count": 2"#).await;
    let newer = api.template("t2", r#", "labels": {"kube_tag": "v1.34.1"}"#).await;
    let cluster = find(api).await;
    let completed_at = Some(cluster.asked_at);
    let complete = ClusterChange::of(Cluster { completed_at, ..cluster });
    api.store.change_cluster(&complete).await.unwrap();
    (id, newer)
}

async fn find(api: &Api) -> Cluster {
    let ident = Ident::Name("c".parse().unwrap());
    api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0)
}

async fn shown(api: &Api) -> Value {
    api.get("/bedplate/v1/clusters/c").await.has(200).json()["upgrade"].clone()
}

const ACTION: &str = "/v1/clusters/c/actions/upgrade";
const UPGRADE: &str = "/bedplate/v1/clusters/c/upgrade";

#[tokio::test]
async fn an_upgrade_is_accepted_as_by_magnum() {
    let api = Api::start().await;
    let (id, newer) = upgradable(&api).await;
    let body = |template: &str| {
        format!(
            r#"{{"cluster_template": "{template}", "max_batch_size": 1, "nodegroup": "default-master"}}"#
        )
    };
    // The body that `openstack coe cluster upgrade --nodegroup` sends; without the option it has no nodegroup.
    api.post(ACTION, &body(&newer)).await.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    let after = api.get("/v1/clusters/c").await.has(200).json();
    assert_eq!(after["status"], "UPDATE_IN_PROGRESS");
    assert_eq!(
        (&after["cluster_template_id"], &after["coe_version"]),
        (&json!(newer), &json!("v1.33.2"))
    );
    assert_eq!(after["labels"], json!({"kube_tag": "v1.34.1"}));
    let groups = |upgrade: &Value| -> Vec<String> {
        let steps = upgrade["steps"].as_array().unwrap();
        steps.iter().map(|it| it["nodegroup"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(groups(&shown(&api).await), ["default-master"]);
    api.post(ACTION, r#"{"cluster_template": "t2", "max_batch_size": "2"}"#).await.has(202);
    let upgrade = shown(&api).await;
    assert_eq!(groups(&upgrade), ["default-master", "default-worker"]);
    assert_eq!(upgrade["steps"][1]["at_once"], 2);
    let old = api.send("POST", ACTION, "container-infra 1.7", &body("t2")).await;
    old.refuses(406, "this path requires API version 1.8; the requested version is 1.7");
}

#[tokio::test]
async fn an_upgrade_that_is_not_possible_is_refused() {
    let api = Api::start().await;
    upgradable(&api).await;
    let check = async |body: &str, status: u16, words: &str| {
        api.post(ACTION, body).await.refuses(status, words);
    };
    check(r#"{"cluster_template": "x"}"#, 404, "ClusterTemplate x could not be found.").await;
    let group = r#"{"cluster_template": "t2", "nodegroup": "x"}"#;
    check(group, 404, "Nodegroup x could not be found.").await;
    let none = r#"{"cluster_template": "t2", "max_batch_size": 0}"#;
    check(none, 400, "max_batch_size: must be at least 1").await;
    let workers = r#"{"cluster_template": "t2", "nodegroup": "default-worker"}"#;
    check(
        workers,
        400,
        "nodegroup: workers cannot be upgraded before the control plane: leave out nodegroup, or name the control plane \
         first",
    )
    .await;
    api.template("far", r#", "labels": {"kube_tag": "v1.31.0"}"#).await;
    check(
        r#"{"cluster_template": "far"}"#,
        400,
        "labels/kube_tag: v1.31.0 is older than v1.33.2, the version of the cluster; Kubernetes cannot be downgraded",
    )
    .await;
    api.template("calico", r#", "network_driver": "calico", "labels": {"kube_tag": "v1.34.1", "pod_network": "routes"}"#).await;
    check(
        r#"{"cluster_template": "calico"}"#,
        400,
        "network_driver: an upgrade cannot change it; take a template that has the cluster's value",
    )
    .await;
    assert_eq!(find(&api).await.roll, None);
    api.post("/v1/clusters/y/actions/upgrade", r#"{"cluster_template": "t2"}"#)
        .await
        .refuses(404, "Cluster y could not be found.");
    api.cluster("new", "").await;
    api.post("/v1/clusters/new/actions/upgrade", r#"{"cluster_template": "t2"}"#)
        .await
        .refuses(409, "cluster new was never complete; an upgrade needs a working cluster");
}

#[tokio::test]
async fn a_plan_tells_the_order_and_records_nothing() {
    let api = Api::start().await;
    upgradable(&api).await;
    let plan = format!("{UPGRADE}/plan");
    let step = |group: &str, members: u32, at_once: u32| {
        format!(
            r#"{{"nodegroup": "{group}", "members": {members}, "at_once": {at_once}, "from": "v1.33.2",
                 "to": "v1.34.1", "changes": []}}"#
        )
    };
    let (masters, workers) = (step("default-master", 3, 1), step("default-worker", 2, 2));
    api.post(&plan, r#"{"cluster_template": "t2", "max_batch_size": 2}"#).await.has(200).is(
        &format!(
            r#"{{"kubernetes": "v1.34.1", "steps": [{masters}, {workers}], "fits": null,
             "fits_reason": "clusterd has no cloud configured", "seconds_at_least": null, "warnings": []}}"#
        ),
    );
    let alone = r#"{"cluster_template": "t2", "nodegroup": "default-master"}"#;
    let alone = api.post(&plan, alone).await.has(200).json();
    assert_eq!(alone["warnings"], json!(["node group default-worker stays at v1.33.2"]));
    let small = r#"{"name": "small", "image_id": "fcos", "coe": "kubernetes", "external_network_id": "public",
                    "flavor_id": "m1.small", "master_lb_enabled": true, "labels": {"kube_tag": "v1.33.2"}}"#;
    api.post("/v1/clustertemplates", small).await.has(201);
    let small = api.post(&plan, r#"{"cluster_template": "small"}"#).await.has(200).json();
    let changes = [0, 1].map(|step| &small["steps"][step]["changes"][0]);
    assert_eq!(changes, ["flavor_id: m1.large to m1.small"; 2]);
    let same = api.post(&plan, r#"{"cluster_template": "t"}"#).await.has(200).json();
    assert_eq!((&same["steps"], &same["fits"]), (&json!([]), &json!(true)));
    assert_eq!(find(&api).await.roll, None);
}

#[tokio::test]
async fn an_upgrade_is_paused_resumed_and_rolled_back() {
    let api = Api::start().await;
    upgradable(&api).await;
    let before = api.get("/v1/clusters/c").await.json();
    let ask = async |verb: &str| api.post(&format!("{UPGRADE}/{verb}"), "").await;
    ask("pause").await.refuses(409, "no upgrade of cluster c is in progress");
    ask("rollback").await.refuses(409, "no upgrade of cluster c is in progress");
    api.post(UPGRADE, r#"{"cluster_template": "t2", "max_unavailable": 1}"#).await.has(202);
    ask("pause").await.has(202);
    assert_eq!(shown(&api).await["paused"], true);
    ask("resume").await.has(202);
    let upgrade = shown(&api).await;
    assert_eq!((&upgrade["paused"], &upgrade["kubernetes"]), (&json!(false), &json!("v1.34.1")));
    ask("rollback").await.has(202);
    assert_eq!(shown(&api).await, Value::Null);
    let after = api.get("/v1/clusters/c").await.json();
    for field in ["cluster_template_id", "labels", "coe_version", "master_count"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let events = api.get("/bedplate/v1/clusters/c/events").await.has(200).json();
    let reasons: Vec<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["reason"].as_str().unwrap())
        .collect();
    let want = ["UpgradeRequested", "UpgradePaused", "UpgradeResumed", "UpgradeRolledBack"];
    assert_eq!(reasons[1..], want);
}

#[tokio::test]
async fn an_upgrade_is_not_rolled_back_to_a_deleted_template() {
    let api = Api::start().await;
    upgradable(&api).await;
    api.post(UPGRADE, r#"{"cluster_template": "t2"}"#).await.has(202);
    api.delete("/v1/clustertemplates/t").await.has(204);
    let why = "the template from before the upgrade was deleted, so the upgrade cannot be rolled back; upgrade to another template";
    api.post(&format!("{UPGRADE}/rollback"), "").await.refuses(409, why);
    assert!(find(&api).await.roll.is_some());
}

#[tokio::test]
async fn other_work_waits_for_an_upgrade() {
    let api = Api::start().await;
    upgradable(&api).await;
    api.post(ACTION, r#"{"cluster_template": "t2"}"#).await.has(202);
    let mut groups = api.store.groups_of(find(&api).await.id).await.unwrap();
    groups[0].outdated = groups[0].machines.clone();
    let change = ClusterChange::of(find(&api).await);
    api.store.change_cluster(&ClusterChange { changed: groups, ..change }).await.unwrap();
    api.post(
        "/v1/clusters/c/actions/resize",
        r#"{"node_count": 1, "nodegroup": "default-master"}"#,
    )
    .await
    .refuses(409, "members of node group default-master are being replaced; try again afterwards");
    api.post("/v1/clusters/c/actions/resize", r#"{"node_count": 3}"#).await.has(202);
}

/// A living conductor of version 0.1.0, which knows schema version 14.
const OLDER: &str = "INSERT INTO conductors (hostname, created_at, seen_at, alive_until, conductor_groups, instance, installation, epoch, \
     draining, settled, turns, program, schema_known) VALUES ('old', 1700000000000000, 1700000000000000, 9000000000000000, '[\"\"]', \
     '11111111-1111-4111-8111-111111111110', '0123456789abcdef', 3, 0, 'old/3', 0, '0.1.0', 14);";

#[tokio::test]
async fn what_an_older_clusterd_could_not_do_is_refused_beside_it() {
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, &SCHEMA[..14]).await.unwrap();
    let inserted = older.write(WriteKind::AnyStatementCanFail, |c| {
        Box::pin(async move { Ok(c.script(OLDER.to_owned()).await?) })
    });
    inserted.await.unwrap();
    let api = Api::on(Store::open(&scratch.url).await.unwrap()).await;
    upgradable(&api).await;
    let why = "an older conductor is running, a clusterd of version 0.1.0, which cannot do this: try again when all are upgraded";
    api.post(ACTION, r#"{"cluster_template": "t2"}"#).await.refuses(409, why);
    let group = r#"{"name": "g", "labels": {"kube_tag": "v1.32.1"}, "merge_labels": true}"#;
    api.post("/v1/clusters/c/nodegroups", group).await.refuses(409, why);
    api.template("t3", r#", "labels": {"kube_tag": "v1.35.0"}"#).await;
    let newest = r#"{"name": "d", "cluster_template_id": "t3"}"#;
    api.post("/v1/clusters", newest).await.refuses(409, why);
    api.cluster("e", "").await;
}
