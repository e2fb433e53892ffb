//! Backups of etcd and restorations from them: members work over real TLS, and clusterd is killed at each step.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeSet;

use cluster_core::{
    Backup, BackupState, BackupUuid, Cluster, DesiredState, RestoreForce, Status, delete_backup,
    request_backup, start_restore, status,
};
use cluster_store::{ClusterChange, StoreError};
use jiff::Timestamp;
use kubernetes::apply::{Document, apply};
use kubernetes::{Access, Client, config_maps, nodes};
use openstack_emulator::{Kind, Stop};
use peers::kill_every;
use serde_json::json;

use crate::fixture::{self, ClusterFixture};
use crate::rotation::{cloud_objects, kill_at_calls, nodes_of};

/// clusterd is killed at every `EVERY`-th call that was not made before, and with `BEDPLATE_SOAK` at each.
const EVERY: usize = 3;
const MASTERS: [&str; 3] = ["default-master-0", "default-master-1", "default-master-2"];

fn client(kubeconfig: &str) -> Client {
    Client::new(&Access::from_kubeconfig(kubeconfig, None).unwrap()).unwrap()
}

/// Creates a ConfigMap in the cluster.
async fn note(kubeconfig: &str, name: &str) {
    let metadata = json!({"name": name, "namespace": "default", "labels": {"note": "yes"}});
    let document = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let document = Document::try_from(document).unwrap();
    apply(&client(kubeconfig), &[document]).await.unwrap();
}

/// The ConfigMaps that [`note`] created.
async fn notes(kubeconfig: &str) -> Vec<String> {
    let found = config_maps::labelled(&client(kubeconfig), "default", "note=yes").await.unwrap();
    found.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

impl ClusterFixture {
    /// Changes the record of the cluster, as the API does.
    async fn change_record(&self, decide: impl Fn(&Cluster) -> Cluster) {
        loop {
            let changed = decide(&self.find().await);
            match self.store.change_cluster(&ClusterChange::of(changed)).await {
                Ok(_) => return,
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Requests a backup, and waits until it was tested.
    async fn back_up(&self) -> BackupUuid {
        let id = BackupUuid::new_v4();
        self.change_record(|it| request_backup(it, id, Timestamp::now()).unwrap()).await;
        let is_tested = |it: &Backup| it.id == id && it.tested_at.is_some();
        self.until("backed up", |it| it.backups.iter().any(is_tested)).await;
        id
    }

    /// Requests a restoration from the newest tested backup.
    async fn ask_to_restore(&self, force: RestoreForce) {
        let groups = self.groups().await;
        let now = Timestamp::now();
        let begin = |it: &Cluster| start_restore(it, &groups, None, force, now).unwrap();
        self.change_record(begin).await;
    }

    /// The number of files of backups.
    fn files(&self) -> usize {
        let folders = std::fs::read_dir(self.backups()).into_iter().flatten().flatten();
        folders.map(|folder| std::fs::read_dir(folder.path()).unwrap().count()).sum()
    }

    fn servers(&self) -> BTreeSet<String> {
        self.cloud.objects(Kind::Server).iter().map(|it| it.id.clone()).collect()
    }
}

#[tokio::test]
async fn a_lost_control_plane_is_restored_to_the_same_endpoint_and_authorities() {
    let given = ClusterFixture::cluster(3, 1).await;
    let first = given.clusterd().await;
    let before = given.until_complete().await;
    let (kubeconfig, servers) = (given.kubeconfig().await, given.servers());
    note(&kubeconfig, "before").await;
    given.back_up().await;
    note(&kubeconfig, "after").await;
    assert_eq!(notes(&kubeconfig).await, ["after", "before"]);

    // Otherwise the first lost member could be replaced before the others are lost.
    first.kill().await;
    for member in MASTERS {
        given.lose(member).await;
    }
    let working = given.clusterd().await;
    let lost =
        |it: &Cluster| MASTERS.iter().all(|name| it.unready.contains(&name.parse().unwrap()));
    given.until("without its control plane", lost).await;
    given.ask_to_restore(RestoreForce::IfLost).await;
    assert_eq!(status(&given.find().await, Timestamp::now()), Status::UpdateInProgress);
    let after = given.until_complete().await;
    assert_eq!(status(&after, Timestamp::now()), Status::UpdateComplete);

    assert_eq!(notes(&kubeconfig).await, ["before"]);
    assert_eq!(nodes_of(&kubeconfig).await, Ok(4));
    assert_eq!((&after.api_address, &after.nodes), (&before.api_address, &before.nodes));
    assert_eq!((after.restore.clone(), after.restores), (None, 1));
    let kept = given.servers().intersection(&servers).count();
    assert_eq!((given.servers().len(), kept), (4, 1), "only the worker's server stays");
    // Each node is the one of the new server.
    for node in nodes::list(&client(&kubeconfig)).await.unwrap() {
        let server = node.provider_id.unwrap().rsplit('/').next().unwrap().to_owned();
        assert!(given.servers().contains(&server), "{} is of a lost server", node.name);
    }
    let events = given.store.events_of(given.id, 1000, None).await.unwrap();
    let reasons: Vec<&str> = events.iter().map(|it| it.reason.as_str()).collect();
    for reason in ["BackupStored", "BackupTested", "RestoreStarts", "Restored"] {
        assert_eq!(reasons.iter().filter(|it| **it == reason).count(), 1, "{reason}: {reasons:?}");
    }
    assert!(!reasons.contains(&"MachineReplaced"), "{reasons:?}");

    // A member is added and repaired as before.
    let mut group = given.groups().await.pop().unwrap();
    group.add_machine();
    given.change(vec![group]).await;
    given.until_complete().await;
    assert_eq!(nodes_of(&kubeconfig).await, Ok(5));
    given.lose("default-master-1").await;
    given
        .until("repaired", |it| {
            !it.nodes.contains(&"default-master-1".parse().unwrap()) && it.nodes.len() == 5
        })
        .await;
    drop(working);
}

#[tokio::test]
async fn a_worker_that_the_backup_does_not_know_becomes_a_node_again() {
    let given = ClusterFixture::cluster(1, 1).await;
    let working = given.clusterd().await;
    given.until_complete().await;
    given.back_up().await;
    let mut group = given.groups().await.pop().unwrap();
    group.add_machine();
    given.change(vec![group]).await;
    given.until_complete().await;
    let kubeconfig = given.kubeconfig().await;
    assert_eq!(nodes_of(&kubeconfig).await, Ok(3));
    given.ask_to_restore(RestoreForce::Always).await;
    given.until_complete().await;
    assert_eq!(nodes_of(&kubeconfig).await, Ok(3));
    drop(working);
}

#[tokio::test]
async fn backups_are_deleted_on_request_and_with_their_cluster() {
    let given = ClusterFixture::cluster(1, 1).await;
    let working = given.clusterd().await;
    given.until_complete().await;
    let (first, _) = (given.back_up().await, given.back_up().await);
    assert_eq!(given.files(), 4, "two snapshots and two manifests");
    given.change_record(|it| delete_backup(it, first).unwrap().unwrap()).await;
    given.until("without the first", |it| it.backups.iter().all(|it| it.id != first)).await;
    assert_eq!(given.files(), 2);

    given.change_record(|it| Cluster { desire: DesiredState::Gone, ..it.clone() }).await;
    let ids = async || given.store.cluster_ids().await.unwrap();
    while !ids().await.is_empty() {
        fixture::pause().await;
    }
    assert_eq!(given.files(), 0);
    drop(working);
}

/// The objects of the cluster's project in the cloud without the ids of servers, which a restoration changes.
fn objects(given: &ClusterFixture) -> BTreeSet<String> {
    let without_id = |line: String| match line.rsplit_once(' ') {
        Some((server, _)) if line.starts_with("Server ") => server.to_owned(),
        Some(_) | None => line,
    };
    cloud_objects(given).into_iter().map(without_id).collect()
}

/// Kills clusterd at calls of a restoration, with the least number of calls of each phase.
async fn killed(stop: Stop, at_least: [usize; 2]) {
    let given = ClusterFixture::cluster(3, 1).await;
    let first = given.clusterd().await;
    given.until_complete().await;
    let kubeconfig = given.kubeconfig().await;
    note(&kubeconfig, "before").await;
    given.back_up().await;
    note(&kubeconfig, "after").await;
    let before = objects(&given);
    first.kill().await;

    given.ask_to_restore(RestoreForce::Always).await;
    let mut counts = Vec::new();
    while let Some(restore) = given.find().await.restore {
        let is_over =
            |it: &Cluster| it.restore.as_ref().is_none_or(|now| now.phase != restore.phase);
        counts.push(kill_at_calls(&given, stop, is_over).await.len());
    }
    let last = given.clusterd().await;
    given.until_complete().await;
    last.kill().await;
    assert_eq!(objects(&given), before, "nothing is made, lost or doubled");
    assert_eq!(nodes_of(&kubeconfig).await, Ok(4));
    assert_eq!(notes(&kubeconfig).await, ["before"]);
    let are_enough =
        counts.iter().zip(at_least).all(|(count, at_least)| *count >= at_least / kill_every(EVERY));
    assert!(are_enough && counts.len() == 2, "{counts:?} of {at_least:?}");
}

/// The least number of calls of each phase: the deletion of the old servers, and the start of the new ones.
const CALLS: [usize; 2] = [9, 15];

#[tokio::test]
async fn killed_before_calls_of_a_restoration() {
    killed(Stop::Before, CALLS).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_restoration() {
    killed(Stop::After, CALLS).await;
}

#[tokio::test]
async fn a_backup_is_taken_although_clusterd_is_killed_meanwhile() {
    let given = ClusterFixture::cluster(1, 1).await;
    let working = given.clusterd().await;
    given.until_complete().await;
    let id = BackupUuid::new_v4();
    given.change_record(|it| request_backup(it, id, Timestamp::now()).unwrap()).await;
    let state = |it: &Cluster| it.backups[0].state;
    given.until("begun", |it| it.backups[0].has_object).await;
    working.kill().await;
    let working = given.clusterd().await;
    given.until("stored", |it| state(it) == BackupState::Stored).await;
    working.kill().await;
    let working = given.clusterd().await;
    given.until("tested", |it| it.backups[0].tested_at.is_some()).await;
    assert_eq!(given.files(), 2);
    drop(working);
}
