//! The settings of VMs.

use cluster_core::UserDataFormat;
use jiff::SignedDuration;
use lease::LeaseSchedule;

/// The settings of VMs.
#[derive(Clone, Debug)]
pub struct VmSettings {
    /// When the stages of a lease are due.
    pub schedule: LeaseSchedule,
    /// The images that VMs may boot besides snapshots.
    pub images: Vec<OfferedImage>,
    /// The default network: id or name.
    pub network: Option<String>,
    /// The network of floating IPs: id or name.
    pub external_network: Option<String>,
    /// The DNS zone of VM names.
    pub zone: Option<String>,
    /// How long the snapshot of an ended lease is kept after its VM is deleted.
    pub keep_copies: SignedDuration,
    /// How often to check whether VMs are idle.
    pub idle_every: SignedDuration,
    /// How long to wait before a VM that did not switch off at the end of its lease is switched off again.
    pub ends_again_after: SignedDuration,
}

/// An image that VMs may boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedImage {
    /// The name in the cloud, of a public image or one of clusterd's own project.
    pub name: String,
    pub user_data_format: UserDataFormat,
    /// In GiB; raises the minimum of the image itself.
    pub min_disk_gib: u64,
    /// In MiB; raises the minimum of the image itself.
    pub min_ram_mib: u64,
}

impl Default for VmSettings {
    fn default() -> Self {
        VmSettings {
            schedule: LeaseSchedule::default(),
            images: Vec::new(),
            network: None,
            external_network: None,
            zone: None,
            keep_copies: SignedDuration::from_hours(30 * 24),
            idle_every: SignedDuration::from_mins(15),
            ends_again_after: SignedDuration::from_mins(15),
        }
    }
}
