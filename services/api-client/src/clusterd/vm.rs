//! VMs, their snapshots and images.

use jiff::Timestamp;
use serde::Deserialize;

use crate::shared::Lease;

/// A VM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Vm {
    pub uuid: String,
    pub name: String,
    pub user_id: String,
    pub status: String,
    pub status_reason: Option<String>,
    /// The action a person has to take; empty if the VM waits for nobody.
    pub next_action: String,
    pub image: String,
    pub flavor: String,
    pub ram_mib: u64,
    pub has_user_data: bool,
    pub address: Option<String>,
    pub floating_ip: Option<String>,
    pub dns_name: Option<String>,
    pub lease: Option<Lease>,
    /// Whether the VM is switched off because its lease ended.
    pub off_by_lease: bool,
    pub updated_at: Option<Timestamp>,
}

/// A VM that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IdleVm {
    pub name: String,
    pub user_id: String,
    pub flavor: String,
    pub idle_since: Timestamp,
    pub why: String,
}

/// A snapshot of a VM's disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Snapshot {
    pub uuid: String,
    pub name: String,
    /// The name of the VM.
    pub machine: String,
    pub status: String,
    pub status_reason: Option<String>,
    pub image_id: Option<String>,
    pub created_at: Timestamp,
    pub keep_until: Option<Timestamp>,
}

/// An image for VMs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Image {
    pub name: String,
    pub min_ram_mib: u64,
    pub min_disk_gib: u64,
}

/// The temporary URL of a VM's console.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConsoleUrl {
    pub url: String,
}

impl Vm {
    /// The next stage of the VM's lease.
    pub fn next_stage(&self) -> Option<&str> {
        Some(self.lease.as_ref()?.next.as_ref()?.step.as_str())
    }
}
