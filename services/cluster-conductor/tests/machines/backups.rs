//! Backups of etcd as members take, test and fetch them.

use std::path::Path;

use bytes::Bytes;
use cluster_conductor::{
    BackupHandout, BackupPlace, ObjectBytes, SnapshotDownload, SnapshotReceipt, SnapshotReport,
};
use cluster_core::{
    Backup, BackupState, BackupStep, BackupTask, BackupUuid, Cluster, Ident, NodeGroup, Restore,
    RestorePhase, request_backup,
};
use cluster_store::{ClusterChange, Scope};
use futures::{StreamExt, TryStreamExt, stream};
use newtype_uuid::GenericUuid;
use openstack::object_store::objects;
use openstack::{CloudConfig, Session};
use openstack_emulator::{Act, Emulator, Rule};
use ring::digest::{SHA256, digest};

use crate::given::{ClusterFixture, file, pass};

const MACHINES: [(&str, &str); 5] = [
    ("default-master-0", "10.0.0.10"),
    ("default-master-1", "10.0.0.11"),
    ("default-master-2", "10.0.0.12"),
    ("default-worker-0", "10.0.0.20"),
    ("default-worker-1", "10.0.0.21"),
];

/// A snapshot of several chunks of the sealed stream.
fn snapshot() -> Vec<u8> {
    b"the secrets of a cluster, ".repeat(20_000)
}

/// A member's credentials: its claim, and the report token from its config.
struct Member {
    claim: String,
    token: String,
}

impl Member {
    async fn ask(&self, given: &ClusterFixture) -> BackupHandout {
        given.conductor.backup_work(&self.claim, &self.token, 0).await
    }

    async fn send(
        &self,
        given: &ClusterFixture,
        backup: BackupUuid,
        bytes: ObjectBytes,
    ) -> SnapshotReceipt {
        let sha256 = hex::encode(digest(&SHA256, &snapshot()));
        let said = SnapshotReport { sha256, revision: 7, etcd: "3.5.16".to_owned() };
        let (claim, token, backup) = (&self.claim, &self.token, backup.to_string());
        given.conductor.take_snapshot(claim, token, &backup, said, bytes).await
    }

    async fn fetch(&self, given: &ClusterFixture, backup: BackupUuid) -> Option<Vec<u8>> {
        let (claim, token, backup) = (&self.claim, &self.token, backup.to_string());
        let found = given.conductor.snapshot_for(claim, token, &backup).await?;
        let SnapshotDownload { size, bytes } = found;
        let parts: Vec<Bytes> = bytes.try_collect().await.ok()?;
        let whole = parts.concat();
        assert_eq!(whole.len() as u64, size);
        Some(whole)
    }

    async fn report(&self, given: &ClusterFixture, backup: BackupUuid, why: Option<&str>) -> bool {
        let (claim, token, backup) = (&self.claim, &self.token, backup.to_string());
        let why = why.map(str::to_owned);
        given.conductor.note_backup_result(claim, token, &backup, why).await
    }
}

fn sent(bytes: Vec<u8>) -> ObjectBytes {
    let parts: Vec<_> = bytes.chunks(5000).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    stream::iter(parts).boxed()
}

/// Makes a complete cluster whose members have all started, and returns their credentials.
async fn running(directory: &Path) -> (ClusterFixture, Vec<Member>) {
    running_with(BackupPlace::Directory(directory.to_owned()), None).await
}

async fn running_with(place: BackupPlace, cloud: Option<Session>) -> (ClusterFixture, Vec<Member>) {
    let mut given = ClusterFixture::labelled(&[]).await;
    given.back_up_to(place, cloud);
    let mut members = Vec::new();
    for (name, from) in MACHINES {
        let claim = given.claim(name).await.0;
        let config = given.config(name, from).await;
        let url = file(&config, "/etc/bedplate/backups.url").unwrap();
        assert!(url.ends_with(&format!("/v1/backups/{claim}\n")), "{url}");
        let curl = file(&config, "/etc/bedplate/backups.curl").unwrap();
        let token = curl.split("Bearer ").nth(1).unwrap().split('"').next().unwrap().to_owned();
        members.push(Member { claim, token });
    }
    let nodes = given.groups.iter().flat_map(NodeGroup::refs).collect();
    let completed_at = Some(given.cluster.created_at);
    given.cluster = Cluster { nodes, completed_at, ..given.cluster.clone() };
    given.save().await;
    (given, members)
}

/// Reads the cluster again.
async fn read(given: &mut ClusterFixture) -> Cluster {
    let ident = Ident::Id(given.cluster.id.into_untyped_uuid());
    let found = given.store.find_clusters(&ident, &Scope::All).await.unwrap();
    given.cluster = found.into_iter().next().unwrap();
    given.cluster.clone()
}

/// Requests a backup.
async fn request(given: &mut ClusterFixture) -> BackupUuid {
    let id = BackupUuid::new_v4();
    let cluster = read(given).await;
    let asked = request_backup(&cluster, id, cluster.created_at).unwrap();
    given.cluster = given.store.change_cluster(&ClusterChange::of(asked)).await.unwrap();
    id
}

async fn backup(given: &mut ClusterFixture) -> Backup {
    read(given).await.backups[0].clone()
}

fn work(backup: BackupUuid, step: BackupStep) -> BackupHandout {
    BackupHandout::Work(BackupTask { backup, step })
}

#[tokio::test]
async fn a_member_takes_a_backup_and_another_transfer_proves_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    assert_eq!(members[0].ask(&given).await, BackupHandout::Rest);
    let id = request(&mut given).await;
    for idle in [1, 2, 3, 4] {
        assert_eq!(members[idle].ask(&given).await, BackupHandout::Rest, "{idle}");
    }
    assert!(!backup(&mut given).await.has_object);
    for _ in 0..2 {
        assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Save));
        assert!(backup(&mut given).await.has_object, "it is recorded before the snapshot is sent");
        given.restart();
    }
    assert_eq!(members[1].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Nothing);
    assert_eq!(members[0].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Stored);
    let stored = backup(&mut given).await;
    let contents = stored.contents.clone().unwrap();
    assert_eq!((stored.state, stored.tested_at), (BackupState::Stored, None));
    assert_eq!((contents.size, contents.revision), (snapshot().len() as u64, 7));

    let path = folder.path().join(format!("{}/{id}.sealed", given.cluster.id));
    let sealed = std::fs::read(&path).unwrap();
    assert!(sealed.starts_with(b"bedplate-stream-1\n"));
    assert!(!sealed.windows(11).any(|part| part == b"the secrets"));
    let manifest = std::fs::read_to_string(path.with_extension("json")).unwrap();
    assert!(manifest.contains(&contents.sha256) && manifest.contains("\"etcd\": \"3.5.16\""));

    assert_eq!(members[0].fetch(&given, id).await, None, "nobody was asked for a test yet");
    assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Test));
    assert_eq!(members[0].fetch(&given, id).await, Some(snapshot()));
    assert_eq!(members[1].fetch(&given, id).await, None);
    assert!(members[0].report(&given, id, None).await);
    assert!(!members[0].report(&given, id, None).await, "the work is done");
    assert!(backup(&mut given).await.tested_at.is_some());
    assert_eq!(members[0].ask(&given).await, BackupHandout::Rest);
    let events = given.events().await.join("\n");
    assert!(events.contains("info BackupStored: default-master-0 took backup"), "{events}");
    assert!(events.contains("info BackupTested: default-master-0 restored backup"), "{events}");
}

#[tokio::test]
async fn a_transfer_that_fails_is_recorded_and_goes_to_the_next_member() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    let id = request(&mut given).await;
    let save = work(id, BackupStep::Save);
    let broken = || -> ObjectBytes {
        let parts = [Ok(Bytes::from_static(b"half")), Err("the member hung up".into())];
        stream::iter(parts).boxed()
    };
    assert_eq!(members[0].ask(&given).await, save);
    assert_eq!(members[0].send(&given, id, broken()).await, SnapshotReceipt::Failed);
    let failed = backup(&mut given).await;
    let why = "the transfer broke off: the member hung up";
    assert_eq!((failed.failures, failed.last_error.as_deref()), (1, Some(why)));
    let path = folder.path().join(format!("{}/{id}.sealed", given.cluster.id));
    assert!(!path.exists());

    assert_eq!(members[0].ask(&given).await, BackupHandout::Rest);
    assert_eq!(members[1].ask(&given).await, save);
    let other = sent(b"another snapshot".to_vec());
    assert_eq!(members[1].send(&given, id, other).await, SnapshotReceipt::Failed);
    let failed = backup(&mut given).await;
    let why = "clusterd received another snapshot than the member sent";
    assert_eq!((failed.failures, failed.last_error.as_deref()), (2, Some(why)));

    assert_eq!(members[2].ask(&given).await, save);
    assert!(members[2].report(&given, id, Some("no space left on device\n")).await);
    let failed = backup(&mut given).await;
    let why = "no space left on device";
    assert_eq!((failed.failures, failed.last_error.as_deref()), (3, Some(why)));
    assert_eq!(members[0].ask(&given).await, save);
    assert_eq!(members[0].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Stored);
}

#[tokio::test]
async fn a_member_that_is_late_sends_nothing_and_the_next_member_takes_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    let id = request(&mut given).await;
    let save = work(id, BackupStep::Save);
    assert_eq!(members[0].ask(&given).await, save);
    pass(29 * 60);
    assert_eq!(members[0].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Nothing);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
    assert_eq!(members[1].ask(&given).await, BackupHandout::Rest);
    pass(61);
    assert_eq!(members[1].ask(&given).await, save);
    let late = backup(&mut given).await;
    let why = "it did not finish in time";
    assert_eq!((late.failures, late.last_error.as_deref()), (1, Some(why)));
    let events = given.events().await.join("\n");
    let said = "warning BackupFailed: default-master-0 could not take backup";
    assert!(events.contains(said), "{events}");
    assert_eq!(members[1].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Stored);
}

#[tokio::test]
async fn a_container_of_the_cloud_keeps_backups() {
    let emulator = Emulator::start(openstack_emulator::Settings::default()).await.unwrap();
    let clouds = emulator.cloud.clouds_yaml();
    let config = CloudConfig::from_clouds_yaml(&clouds, Some("clusterd")).unwrap();
    let session = Session::new(config).unwrap();
    let place = BackupPlace::Container("etcd".to_owned());
    let (mut given, members) = running_with(place, Some(session.clone())).await;
    let id = request(&mut given).await;
    let full = Act::Answer { status: 507, retry_after: None, message: None };
    let path = "/object-store/v1/*/etcd/*/*.sealed";
    emulator.cloud.misbehave(Rule::new("PUT", path, full).nth(1));
    assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Save));
    assert_eq!(members[0].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Failed);
    let why = backup(&mut given).await.last_error.unwrap();
    assert!(why.contains("the object-store service answered 507"), "{why}");

    emulator.cloud.void_tokens();
    assert_eq!(members[1].ask(&given).await, work(id, BackupStep::Save));
    assert_eq!(members[1].send(&given, id, sent(snapshot())).await, SnapshotReceipt::Stored);
    let name = format!("{}/{id}.sealed", given.cluster.id);
    let stored = objects::read(&session, "etcd", &name).await.unwrap().unwrap();
    let parts: Vec<Bytes> = stored.into_stream().try_collect().await.unwrap();
    let sealed = parts.concat();
    assert!(sealed.starts_with(b"bedplate-stream-1\n") && sealed.len() > snapshot().len());

    assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Test));
    assert_eq!(members[0].fetch(&given, id).await, Some(snapshot()));
    objects::delete(&session, "etcd", &name).await.unwrap();
    assert_eq!(members[0].fetch(&given, id).await, None);
}

#[tokio::test]
async fn a_changed_object_does_not_pass_for_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    let id = request(&mut given).await;
    members[0].ask(&given).await;
    members[0].send(&given, id, sent(snapshot())).await;
    assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Test));
    let path = folder.path().join(format!("{}/{id}.sealed", given.cluster.id));
    let mut sealed = std::fs::read(&path).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &sealed).unwrap();
    assert_eq!(members[0].fetch(&given, id).await, None);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(members[0].fetch(&given, id).await, None);
}

#[tokio::test]
async fn control_plane_members_of_a_restoration_start_from_the_backup_and_workers_are_told_later() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    let id = request(&mut given).await;
    members[0].ask(&given).await;
    members[0].send(&given, id, sent(snapshot())).await;
    let cluster = read(&mut given).await;
    let now = cluster.created_at;
    let restore = |phase| Some(Restore { backup: id, requested_at: now, phase, since: now });
    given.cluster = Cluster { restore: restore(RestorePhase::Clearing), ..cluster };
    given.save().await;
    assert_eq!(members[0].fetch(&given, id).await, None, "the old servers get nothing");
    given.cluster.restore = restore(RestorePhase::Starting);
    given.save().await;

    for (name, from) in &MACHINES[..3] {
        let claim = given.claim(name).await.0;
        let config = given.config(name, from).await;
        let units = config["systemd"]["units"].to_string();
        assert!(units.contains(&format!("/etc/bedplate/backups start {id}")), "{units}");
        let etcd = file(&config, "/etc/bedplate/init-etcd.yaml").unwrap();
        assert_eq!(etcd.matches(":2380").count(), 3, "{etcd}");
        assert_eq!(file(&config, "/var/lib/bedplate/backups/restores").unwrap(), "1\n");
        let curl = file(&config, "/etc/bedplate/backups.curl").unwrap();
        let token = curl.split("Bearer ").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let member = Member { claim, token };
        assert_eq!(member.fetch(&given, id).await, Some(snapshot()));
        assert_eq!(member.ask(&given).await, BackupHandout::Soon);
    }
    assert_eq!(members[0].fetch(&given, id).await, None, "its claim was replaced");
    assert_eq!(members[3].fetch(&given, id).await, None, "a worker needs no snapshot");
    assert_eq!(members[3].ask(&given).await, BackupHandout::Soon);

    let cluster = read(&mut given).await;
    given.cluster = Cluster { restore: None, restores: 1, ..cluster };
    given.save().await;
    let worker = &members[3];
    assert_eq!(worker.ask(&given).await, BackupHandout::Refresh(1));
    let knows = given.conductor.backup_work(&worker.claim, &worker.token, 1).await;
    assert_eq!(knows, BackupHandout::Rest);
}

#[tokio::test]
async fn a_wrong_token_gets_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut given, members) = running(folder.path()).await;
    let id = request(&mut given).await;
    assert_eq!(members[0].ask(&given).await, work(id, BackupStep::Save));
    let mixed = Member { claim: members[0].claim.clone(), token: members[1].token.clone() };
    let unknown = Member { claim: "x".to_owned(), token: members[0].token.clone() };
    for stranger in [mixed, unknown] {
        assert_eq!(stranger.ask(&given).await, BackupHandout::Nothing);
        assert_eq!(stranger.send(&given, id, sent(snapshot())).await, SnapshotReceipt::Nothing);
        assert!(!stranger.report(&given, id, Some("no")).await);
        assert_eq!(stranger.fetch(&given, id).await, None);
    }
    assert_eq!(backup(&mut given).await.failures, 0);
}
