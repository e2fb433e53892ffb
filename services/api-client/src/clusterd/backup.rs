//! Backups of clusters' etcd, and restorations from them.

use jiff::Timestamp;
use serde::Deserialize;

/// A backup of a cluster's etcd.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Backup {
    pub uuid: String,
    pub origin: String,
    pub state: String,
    pub requested_at: Timestamp,
    /// `save`, `test`; `None`: no member has anything to do.
    pub step: Option<String>,
    pub last_error: Option<String>,
    /// In bytes; `None` until the store has all of it.
    pub size: Option<u64>,
    /// `None` until a member restored the stored object into an empty folder.
    pub tested_at: Option<Timestamp>,
}

/// A cluster with the restoration of its control plane.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterRestore {
    pub name: String,
    /// `None`: no restoration is in progress.
    pub restore: Option<Restore>,
}

/// A restoration that is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Restore {
    pub backup: String,
    pub phase: String,
}
