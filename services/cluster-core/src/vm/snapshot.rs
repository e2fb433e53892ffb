//! Snapshots of VMs: the record of each, and the decisions of its turn.
//!
//! A snapshot belongs to its owner and outlives its VM. A snapshot counts as made when Glance says that its image is active.

mod turn;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Name, Severity, SnapshotUuid, VmUuid};

use super::{UserDataFormat, Vm, VmEvent, VmImage};

pub use turn::{
    SnapshotAction, SnapshotObservation, SnapshotOutcome, SnapshotRules, SnapshotUpdate,
    after_snapshot_actions, plan_snapshot,
};

/// A requested snapshot, with its progress and result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: SnapshotUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    /// The project that owns the snapshot.
    pub project: String,
    /// The user who requested the snapshot, or the VM when its lease ended.
    pub user: String,
    /// The id of the cloud's project in which the image is: the one of the VM.
    pub cloud_project: Option<String>,
    /// The VM may be deleted already.
    pub vm: VmUuid,
    pub vm_name: Name,
    /// Unique within the project.
    pub name: Name,
    pub why: SnapshotOrigin,
    pub created_at: Timestamp,
    /// The size of the VM's disk, in GiB.
    pub size_gib: u64,
    /// The format of user-data that the system on the snapshot reads.
    #[serde(alias = "told")]
    pub user_data_format: UserDataFormat,
    pub state: SnapshotState,
    /// The id of the image in the cloud, once known.
    pub image: Option<String>,
    /// When the image was last requested from Nova.
    pub asked_at: Option<Timestamp>,
    /// How many requests in a row got no answer. A crash before the request is sent does not count.
    pub times: u32,
    /// How often the snapshot failed in a row.
    pub failures: u32,
    pub failed_at: Option<Timestamp>,
    /// Why it last failed.
    pub reason: Option<String>,
    pub made_at: Option<Timestamp>,
    /// When the snapshot is deleted; `None`: never.
    pub keep_until: Option<Timestamp>,
}

/// The origin of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotOrigin {
    /// A request through the API.
    Asked,
    /// The end of the VM's lease.
    LeaseEnded,
}

words::words! {
    /// The state of a snapshot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SnapshotState {
        /// Nova is to be asked for the image.
        Wanted = "wanted",
        /// Nova was asked for the image.
        Making = "making",
        /// The image can be used.
        Active = "active",
        Failed = "failed",
        /// The image is to be deleted.
        Leaving = "leaving",
    }
}

/// An image in the cloud that has the name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotImage {
    pub id: String,
    /// `Some(Ok)`: the image can be used. `None`: not yet. `Some(Err)`: it never will be, for this reason.
    pub usable: Option<Result<(), String>>,
}

impl Snapshot {
    /// Makes a new snapshot of `of`.
    pub fn new(id: SnapshotUuid, of: &Vm, name: Name, why: SnapshotOrigin, now: Timestamp) -> Self {
        Snapshot {
            id,
            version: 1,
            project: of.project.clone(),
            user: of.user.clone(),
            cloud_project: of.cloud_project.clone(),
            vm: of.id,
            vm_name: of.name.clone(),
            name,
            why,
            created_at: now,
            size_gib: of.disk_gib(),
            user_data_format: of.image.user_data_format,
            state: SnapshotState::Wanted,
            image: None,
            asked_at: None,
            times: 0,
            failures: 0,
            failed_at: None,
            reason: None,
            made_at: None,
            keep_until: None,
        }
    }

    /// Returns the name of the image in the cloud. The id in it makes it unique.
    pub fn image_name(&self) -> String {
        format!("{}-{}", self.name.label(40), self.id)
    }

    /// Returns the snapshot, to be deleted.
    pub fn leaving(&self) -> Snapshot {
        Snapshot { state: SnapshotState::Leaving, ..self.clone() }
    }

    /// Returns the snapshot after a request that got no answer.
    pub(super) fn unanswered(&self) -> Snapshot {
        Snapshot { times: self.times.saturating_add(1), ..self.clone() }
    }

    /// Whether the snapshot failed and is not tried again.
    pub fn is_failed_for_good(&self) -> bool {
        self.state == SnapshotState::Failed && self.why == SnapshotOrigin::Asked
    }

    /// Returns the image that a VM boots from the snapshot; `None` when the image cannot be used.
    pub fn bootable(&self) -> Option<VmImage> {
        let id = self.image.clone().filter(|_| self.state == SnapshotState::Active)?;
        Some(VmImage {
            id,
            name: self.name.to_string(),
            user_data_format: self.user_data_format,
            min_disk_gib: self.size_gib,
            min_ram_mib: 0,
        })
    }

    /// Returns the snapshot after the cloud refused or failed it, with the events to record.
    pub fn failed(&self, why: &str, now: Timestamp) -> (Snapshot, Vec<VmEvent>) {
        let failed = Snapshot {
            state: SnapshotState::Failed,
            failures: self.failures.saturating_add(1),
            failed_at: Some(now),
            reason: Some(why.to_owned()),
            times: 0,
            ..self.clone()
        };
        let message = match self.why {
            SnapshotOrigin::Asked => format!("snapshot {} failed: {why}", self.name),
            SnapshotOrigin::LeaseEnded => {
                format!("the snapshot {} to keep failed, and is tried again: {why}", self.name)
            }
        };
        let reported = self.why == SnapshotOrigin::Asked || self.failures == 0;
        let event = VmEvent::new(self.vm, Severity::Error, "SnapshotFailed", message, now);
        (failed, if reported { vec![event] } else { Vec::new() })
    }
}
