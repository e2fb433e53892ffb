//! The record of a restoration of a cluster's control plane.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::BackupUuid;

/// A restoration that is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub backup: BackupUuid,
    pub requested_at: Timestamp,
    pub phase: RestorePhase,
    /// Since when the phase lasts.
    pub since: Timestamp,
}

words::words! {
    /// How far a restoration is, with its name in the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RestorePhase {
        /// The control-plane servers are deleted, and none is created.
        Clearing = "clearing",
        /// New control-plane servers start from the backup.
        Starting = "starting",
    }
}
