//! Backups of etcd, and restorations from them.

use cluster_core::{
    Backup, BackupContents, BackupState, Cluster, Condition, ConditionKind, ConditionStatus, Ident,
};
use cluster_store::{ClusterChange, Scope};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;

const BACKUPS: &str = "/bedplate/v1/clusters/c/backups";
const RESTORE: &str = "/bedplate/v1/clusters/c/restore";
const NOW: &str = "2026-01-02T03:04:05.000006+00:00";

async fn read(api: &Api) -> Cluster {
    let ident: Ident = "c".parse().unwrap();
    api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0)
}

async fn write(api: &Api, cluster: Cluster) {
    api.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
}

/// Starts the API with a complete cluster `c` whose control plane has this status.
async fn complete(control_plane: ConditionStatus) -> Api {
    let api = Api::with_backups().await;
    api.small().await;
    let cluster = read(&api).await;
    let now: Timestamp = NOW.parse().unwrap();
    let available = Condition {
        kind: ConditionKind::ControlPlaneAvailable,
        status: control_plane,
        reason: String::new(),
        message: String::new(),
        next_action: String::new(),
        is_final: false,
        since: now,
    };
    write(&api, Cluster { completed_at: Some(now), conditions: vec![available], ..cluster }).await;
    api
}

/// Requests a backup and records that the store has it. Returns its id.
async fn stored(api: &Api) -> String {
    let made = api.post(BACKUPS, "").await.has(202).json();
    let id = made["uuid"].as_str().unwrap().to_owned();
    let cluster = read(api).await;
    let contents = BackupContents {
        stored_at: NOW.parse().unwrap(),
        size: 4096,
        sha256: "0a".repeat(32),
        revision: 7,
        etcd: "3.5.16".to_owned(),
        kubernetes: cluster.kubernetes,
        authorities: 0,
    };
    let backups = cluster.backups.iter().map(|backup| Backup {
        state: BackupState::Stored,
        has_object: true,
        contents: Some(contents.clone()),
        tested_at: Some(contents.stored_at),
        ..backup.clone()
    });
    let backups = backups.collect();
    write(api, Cluster { backups, ..cluster }).await;
    id
}

#[tokio::test]
async fn a_backup_is_requested_shown_and_deleted() {
    let api = complete(ConditionStatus::True).await;
    api.get(BACKUPS).await.has(200).is(r#"{"backups": []}"#);
    let made = api.post(BACKUPS, "").await.has(202).json();
    let want = json!({
        "uuid": made["uuid"], "origin": "requested", "state": "wanted", "requested_at": NOW, "step": "save", "member": null, "failures": 0,
        "last_error": null, "stored_at": null, "size": null, "sha256": null, "revision": null, "etcd": null,
        "kubernetes": null, "tested_at": null,
    });
    assert_eq!(made, want);
    let id = made["uuid"].as_str().unwrap();
    let path = format!("{BACKUPS}/{id}");
    assert_eq!(api.get(&path).await.has(200).json(), want);
    assert_eq!(api.get(BACKUPS).await.has(200).json(), json!({"backups": [want]}));
    assert_eq!(api.delete(&path).await.has(202).json()["state"], "deleting");

    let id = stored(&api).await;
    let shown = api.get(&format!("{BACKUPS}/{id}")).await.has(200).json();
    let of = |field: &str| shown[field].clone();
    let contents =
        ["state", "step", "stored_at", "size", "revision", "etcd", "kubernetes", "tested_at"];
    let want = json!(["stored", null, NOW, 4096, 7, "3.5.16", "v1.34.1", NOW]);
    assert_eq!(Value::from_iter(contents.map(of)), want);
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert!(events.contains("BackupRequested") && events.contains("BackupDeletionRequested"));
}

#[tokio::test]
async fn a_request_for_a_backup_is_refused_with_the_reason() {
    let api = Api::start().await;
    api.small().await;
    let why = "clusterd has no store for backups: an administrator has to configure [backups]";
    api.post(BACKUPS, "").await.refuses(409, why);
    api.post(RESTORE, "{}").await.refuses(409, why);

    let api = Api::with_backups().await;
    api.small().await;
    let why = "the cluster is being created; try again when it is complete";
    api.post(BACKUPS, "").await.refuses(409, why);
    let why = "the cluster was never complete, so there is nothing to restore";
    api.post(RESTORE, "{}").await.refuses(409, why);
    for unknown in ["none", "ac9e6679-7425-40de-944b-e07fc1f90ae7"] {
        let path = format!("{BACKUPS}/{unknown}");
        let why = format!("Backup {unknown} could not be found.");
        api.get(&path).await.refuses(404, &why);
        api.delete(&path).await.refuses(404, &why);
    }
    assert_eq!(read(&api).await.backups, []);
}

#[tokio::test]
async fn a_lost_control_plane_is_restored_on_request() {
    let api = complete(ConditionStatus::False).await;
    let why = "backup: the cluster has no backup that was tested; name the id of a stored one";
    api.post(RESTORE, "{}").await.refuses(400, why);
    let id = stored(&api).await;
    api.post(RESTORE, r#"{"backup": "x"}"#)
        .await
        .refuses(400, "backup: must be the id of a backup");
    assert_eq!(api.post(RESTORE, r#"{"from": "x"}"#).await.status, 400);
    let idle = json!({"uuid": read(&api).await.id.to_string(), "name": "c", "restore": null});
    assert_eq!(api.get(RESTORE).await.has(200).json(), idle);

    let begun = api.post(RESTORE, "").await.has(202).json();
    let restore = json!({"backup": id, "phase": "clearing", "requested_at": NOW});
    assert_eq!(begun, json!({"uuid": idle["uuid"], "name": "c", "restore": restore}));
    assert_eq!(api.get(RESTORE).await.has(200).json(), begun);
    let why = "the cluster is being restored from this backup; try again when its control plane is available";
    api.delete(&format!("{BACKUPS}/{id}")).await.refuses(409, why);
    let why = "the cluster is being restored; try again when its control plane is available";
    api.post(BACKUPS, "").await.refuses(409, why);
    let why = "the control plane of cluster c is being restored; try again afterwards";
    let larger = r#"{"node_count": 3, "nodegroup": "default-master"}"#;
    api.post("/v1/clusters/c/actions/resize", larger).await.refuses(409, why);
    api.post("/v1/clusters/c/actions/resize", r#"{"node_count": 3}"#).await.has(202);
}

#[tokio::test]
async fn a_control_plane_with_a_config_of_its_own_is_not_restored() {
    let api = complete(ConditionStatus::False).await;
    stored(&api).await;
    let own = "/bedplate/v1/clusters/c/nodegroups/default-master/ignition";
    api.put(own, r#"{"ignition": {"version": "3.4.0"}}"#).await.has(200);
    let why = "node group default-master has an Ignition config of its own, with which no member starts from a backup; \
               remove the config first";
    api.post(RESTORE, "{}").await.refuses(409, why);
    assert_eq!(read(&api).await.restore, None);
    api.delete(own).await.has(204);
    api.post(RESTORE, "{}").await.has(202);
}

#[tokio::test]
async fn an_available_control_plane_is_restored_only_by_force() {
    let api = complete(ConditionStatus::True).await;
    let id = stored(&api).await;
    let why = "the control plane is available, and a restoration undoes every change since the backup; repeat the request \
               with force if that is what you want";
    api.post(RESTORE, "{}").await.refuses(409, why);
    let body = json!({"backup": id, "force": true}).to_string();
    let begun = api.post(RESTORE, &body).await.has(202).json();
    assert_eq!(begun["restore"]["backup"], id.as_str());
}
