//! Faults of a machine, in addition to those of its BMC.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The faults of a machine; several can be active at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSet {
    /// DHCP requests are lost.
    pub drop_dhcp: bool,
    /// Each DHCP request arrives twice.
    pub duplicate_dhcp: bool,
    /// Delay of DHCP requests in milliseconds.
    pub delay_dhcp_millis: Option<u64>,
    /// DHCP answers are lost.
    pub deaf_to_dhcp: bool,
    pub hang_in_firmware: bool,
    /// The ramdisk starts, but its agent never contacts the conductor.
    pub never_call_back: bool,
    /// The machine restarts once when the agent starts this step.
    pub reboot_in_step: Option<String>,
    /// The agent stops sending heartbeats and answering requests.
    pub agent_is_silent: bool,
    /// The agent sends heartbeats, and answers each request for its commands with this status.
    pub agent_refuses: Option<u16>,
    /// The agent sends heartbeats, but its port is closed. Evaluated at the agent's start.
    pub agent_does_not_listen: bool,
    /// The agent reports another certificate than it shows. Evaluated at the agent's start.
    pub agent_shows_another_certificate: bool,
    /// Limit of downloads in bytes per second.
    pub download_rate: Option<u64>,
    /// The agent stops after the next piece of an image until this fault ends.
    pub hold_image: bool,
    pub lie: Option<InventoryLie>,
    /// The disk is full after this many bytes.
    pub disk_full_after: Option<u64>,
    pub fail_step: Option<String>,
    /// This many of the next downloads of kernels and ramdisks break off.
    pub break_downloads: u32,
}

/// A lie in the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryLie {
    NoDisks,
    /// The network ports have other addresses.
    OtherPorts,
    HalfTheMemory,
    /// The body is not an inventory.
    Nonsense,
}

impl FaultSet {
    pub(crate) fn dhcp_delay(&self) -> Option<Duration> {
        self.delay_dhcp_millis.map(Duration::from_millis)
    }
}
