//! The record of a VM: the virtual machine of a person, with the conclusions of the last observation.

mod action;
mod conclusion;
mod event;
mod flavor;
mod image;
mod lease;
mod lease_grant;
mod observation;
mod phase;
mod plan;
mod request;
mod resource_use;
mod server;
mod shape;
mod snapshot;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ::lease::{Lease, MailAddress};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trace_context::TraceContext;

use crate::{DesiredState, FailureCount, Key, Name, Owner, Problem, SnapshotUuid, VmUuid};

pub use action::{ActionOrigin, RequestArrival, SentRequest, VmAction, VmActionKind};
pub use event::VmEvent;
pub use flavor::VmFlavor;
pub use image::{FlavorTooSmall, UserDataFormat, VmImage};
pub use lease_grant::grant_vm_lease;
pub use observation::VmRules;
pub use phase::VmPhase;
pub use plan::vm_plan;
pub use request::VmRefusal;
pub use server::{IdleCheck, IdleSource, ServerObservation};
pub use shape::{VmMachine, vm_desired_objects, vm_machine, vm_tag};
pub use snapshot::{
    Snapshot, SnapshotAction, SnapshotImage, SnapshotObservation, SnapshotOrigin, SnapshotOutcome,
    SnapshotRules, SnapshotState, SnapshotUpdate, after_snapshot_actions, plan_snapshot,
};
pub use turn::{
    VmCall, VmCallResult, VmCloudWork, VmRecords, VmRequest, VmUpdate, after_vm_calls, plan_vm,
};

/// A VM: what its owner asked for, and what the conductor concluded from the last observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    pub id: VmUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    /// The project that owns the VM.
    pub project: String,
    pub user: String,
    /// The id of the cloud's project in which the VM is created; `None` before the first turn.
    pub cloud_project: Option<String>,
    /// Unique within the project.
    pub name: Name,
    pub created_at: Timestamp,
    /// The last change by request; changes by the conductor do not count.
    pub updated_at: Option<Timestamp>,
    pub image: VmImage,
    pub flavor: VmFlavor,
    /// Public keys that may log in, one per entry, in the format of `authorized_keys`.
    pub ssh_keys: Vec<String>,
    /// The size of the volume that the VM boots from, in GiB; `None`: it boots from the disk of its flavor.
    pub root_volume: Option<u32>,
    /// The id of the network.
    pub network: String,
    /// The id of the external network of its floating IP; `None`: no floating IP.
    pub public: Option<String>,
    /// The DNS zone of its name; `None`: no DNS name.
    pub zone: Option<String>,
    pub availability_zone: Option<String>,
    /// Additional user-data of the owner.
    pub user_data: Option<UserData>,
    /// `None`: the VM exists without end.
    pub lease: Option<Lease>,
    /// A mail address that receives notices about the end of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
    /// Whether the VM should exist or be deleted.
    pub desire: DesiredState,
    /// The trace of the request that asked for what is in progress, recorded with the intent: the turns after a restart continue the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The action in progress, such as a reboot.
    #[serde(alias = "errand")]
    pub action: Option<VmAction>,
    /// Whether the end of the lease switched the VM off; it then starts again when the end is undone.
    pub off_by_lease: bool,
    /// When the VM last failed to switch off at the end of its lease.
    pub ending_failed_at: Option<Timestamp>,
    /// The snapshot that is kept of the VM because its lease ended.
    pub copy: Option<SnapshotUuid>,
    /// When its server first ran.
    pub built_at: Option<Timestamp>,
    /// The last observation of its server; `None`: the cloud had none.
    pub server: Option<ServerObservation>,
    /// The address in its network, once known.
    pub address: Option<IpAddr>,
    /// The address of its floating IP, once known.
    pub public_address: Option<IpAddr>,
    /// Failures of the cloud to create an object, which delay the next attempt.
    pub setbacks: BTreeMap<Key, FailureCount>,
    /// A problem that stops all work, when its reason is known.
    pub problem: Option<Problem>,
    /// Whether the VM seems to be idle, when the conductor checked.
    pub idle: Option<IdleCheck>,
}

/// The user-data of an owner. The bytes are sealed in a table of their own, and kept only until the server is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserData {
    /// `SALT:SHA-256` of the salt and the bytes, in hex. A later request is compared with it to see whether the user-data is the same.
    pub digest: String,
    /// Whether the sealed bytes still exist.
    pub is_kept: bool,
}

impl Vm {
    /// Makes a new VM without any of the optional parts.
    pub fn new(
        id: VmUuid,
        owner: Owner,
        name: Name,
        (image, flavor, network): (VmImage, VmFlavor, String),
        now: Timestamp,
    ) -> Self {
        Vm {
            id,
            version: 1,
            project: owner.project,
            user: owner.user,
            cloud_project: None,
            name,
            created_at: now,
            updated_at: None,
            image,
            flavor,
            ssh_keys: Vec::new(),
            root_volume: None,
            network,
            public: None,
            zone: None,
            availability_zone: None,
            user_data: None,
            lease: None,
            notify: None,
            desire: DesiredState::Exist,
            trace: None,
            action: None,
            off_by_lease: false,
            ending_failed_at: None,
            copy: None,
            built_at: None,
            server: None,
            address: None,
            public_address: None,
            setbacks: BTreeMap::new(),
            problem: None,
            idle: None,
        }
    }

    /// Returns the trace of the last request, until everything that the request asked for is complete.
    pub fn trace_in_progress(&self) -> Option<&TraceContext> {
        let is_complete = self.built_at.is_some() && self.action.is_none();
        let is_wanted = self.desire == DesiredState::Exist;
        self.trace.as_ref().filter(|_| !(is_complete && is_wanted))
    }

    /// Returns the DNS name of the VM without the final dot; `None` when it has no zone.
    pub fn host(&self) -> Option<String> {
        let zone = self.zone.as_deref()?.trim_end_matches('.');
        Some(format!("{}.{zone}", self.name.label(63)))
    }

    /// Returns the DNS zone of the VM with the final dot, as Designate writes it.
    pub fn zone_name(&self) -> Option<String> {
        let zone = self.zone.as_deref()?.trim_end_matches('.');
        Some(format!("{zone}."))
    }

    /// Returns the size of the disk that the VM boots from, in GiB.
    pub fn disk_gib(&self) -> u64 {
        self.root_volume.map_or(self.flavor.size.disk_gib, u64::from)
    }
}
