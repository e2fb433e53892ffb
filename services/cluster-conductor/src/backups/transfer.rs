//! Moves snapshots between members and the store of backups.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cluster_core::{Backup, BackupContents, BackupUuid, Cluster, ClusterUuid};
use futures::{StreamExt, stream};
use sealing::{SealError, StreamOpener, StreamSealer};
use serde::Serialize;

use crate::backup_store::{BackupStore, BackupStoreError, ObjectBytes};
use crate::cluster_secrets::KeysError;
use crate::context::ConductorContext;

use super::sealed_bytes::{Tally, opened, sealed};

/// The largest snapshot in bytes: etcd's documentation suggests 8 GiB as the largest size of its data.
const LARGEST_SNAPSHOT: u64 = 8 << 30;

/// A member's report about the snapshot that it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The SHA-256 in hexadecimal.
    pub sha256: String,
    /// etcd's revision.
    pub revision: u64,
    /// The version of etcd.
    pub etcd: String,
}

/// A snapshot that a member fetches, opened.
pub struct SnapshotDownload {
    /// In bytes.
    pub size: u64,
    pub bytes: ObjectBytes,
}

/// Why a snapshot was not stored or fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("cannot seal the snapshot")]
    Seal(#[from] SealError),
    #[error(transparent)]
    Object(#[from] BackupStoreError),
    #[error("clusterd has no store for backups any more")]
    NoStore,
    #[error("the transfer did not end in time")]
    TooSlow,
    #[error("clusterd received another snapshot than the member sent")]
    Checksum,
}

/// The manifest of a backup in the store, for people who look at the store. Nothing reads it.
#[derive(Serialize)]
struct Manifest<'a> {
    backup: String,
    cluster: String,
    cluster_name: &'a str,
    requested_at: String,
    stored_at: String,
    size: u64,
    sha256: &'a str,
    revision: u64,
    etcd: &'a str,
    kubernetes: String,
    format: &'static str,
}

/// Returns the path of a backup's sealed snapshot in the store.
fn snapshot_path(cluster: ClusterUuid, backup: BackupUuid) -> String {
    format!("{cluster}/{backup}.sealed")
}

fn manifest_path(cluster: ClusterUuid, backup: BackupUuid) -> String {
    format!("{cluster}/{backup}.json")
}

/// Deletes everything that the store has of a backup.
pub(crate) async fn delete_objects(
    store: &BackupStore,
    cluster: ClusterUuid,
    backup: BackupUuid,
) -> Result<(), BackupStoreError> {
    store.delete(&manifest_path(cluster, backup)).await?;
    store.delete(&snapshot_path(cluster, backup)).await
}

/// Seals a snapshot on its way to the store, and checks that it arrived as the member sent it.
pub(super) async fn store(
    context: &ConductorContext,
    cluster: &Cluster,
    backup: &Backup,
    said: SnapshotReport,
    bytes: ObjectBytes,
) -> Result<BackupContents, TransferError> {
    let place = context.backup_store.as_ref().ok_or(TransferError::NoStore)?;
    let secret = context.secrets.backup_key(cluster).await?;
    let sealer = StreamSealer::new(&secret, &seal_place(cluster, backup.id))?;
    let tally = Arc::new(Mutex::new(Tally::new(LARGEST_SNAPSHOT)));
    let bytes = sealed(bytes, sealer, tally.clone());
    place.write(&snapshot_path(cluster.id, backup.id), bytes).await?;
    let (size, sha256) = tally.lock().unwrap_or_else(PoisonError::into_inner).result();
    if sha256 != said.sha256 {
        return Err(TransferError::Checksum);
    }
    let (authorities, _) = cluster.authorities.generations();
    let contents = BackupContents {
        stored_at: (context.settings.clock)(),
        size,
        sha256,
        revision: said.revision,
        etcd: plain(&said.etcd),
        kubernetes: cluster.kubernetes,
        authorities,
    };
    let manifest = manifest(cluster, backup, &contents);
    let manifest = stream::once(async move { Ok(Bytes::from(manifest)) }).boxed();
    place.write(&manifest_path(cluster.id, backup.id), manifest).await?;
    Ok(contents)
}

/// Opens a snapshot on its way from the store. `None` if the store does not have it.
pub(super) async fn fetch(
    context: &ConductorContext,
    cluster: &Cluster,
    backup: &Backup,
) -> Result<Option<SnapshotDownload>, TransferError> {
    let Some(contents) = &backup.contents else { return Ok(None) };
    let place = context.backup_store.as_ref().ok_or(TransferError::NoStore)?;
    let Some(bytes) = place.read(&snapshot_path(cluster.id, backup.id)).await? else {
        return Ok(None);
    };
    let secret = context.secrets.backup_key(cluster).await?;
    let opener = StreamOpener::new(&secret, &seal_place(cluster, backup.id));
    Ok(Some(SnapshotDownload { size: contents.size, bytes: opened(bytes, opener) }))
}

/// Returns the place that a sealed snapshot is bound to.
fn seal_place(cluster: &Cluster, backup: BackupUuid) -> String {
    format!("{}/backups/{backup}", cluster.id)
}

fn manifest(cluster: &Cluster, backup: &Backup, contents: &BackupContents) -> String {
    let manifest = Manifest {
        backup: backup.id.to_string(),
        cluster: cluster.id.to_string(),
        cluster_name: cluster.name.as_str(),
        requested_at: backup.requested_at.to_string(),
        stored_at: contents.stored_at.to_string(),
        size: contents.size,
        sha256: &contents.sha256,
        revision: contents.revision,
        etcd: &contents.etcd,
        kubernetes: contents.kubernetes.to_string(),
        format: "bedplate-stream-1",
    };
    let text = serde_json::to_string_pretty(&manifest).expect("texts and numbers are JSON");
    format!("{text}\n")
}

/// Returns the printable part of a text that a member sent.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(300).collect()
}
