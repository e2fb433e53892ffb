//! How a machine can be told to misbehave, beside what its BMC does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything that can be wrong with a machine at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSet {
    /// Its DHCP requests never arrive.
    pub drop_dhcp: bool,
    /// Each of its DHCP requests arrives twice.
    pub duplicate_dhcp: bool,
    /// Its DHCP requests arrive so late.
    pub delay_dhcp_millis: Option<u64>,
    /// It does not hear what DHCP answers.
    pub deaf_to_dhcp: bool,
    /// Its firmware never gets as far as booting.
    pub hang_in_firmware: bool,
    /// Its ramdisk starts and its agent never says a word.
    pub never_call_back: bool,
    /// It restarts by itself as soon as its agent begins this step; once.
    pub reboot_in_step: Option<String>,
    /// Its agent neither reports nor answers any more.
    pub agent_is_silent: bool,
    /// Its agent reports, and answers every request for its commands with this status.
    pub agent_refuses: Option<u16>,
    /// Its agent reports, and listens nowhere; as it is when the agent starts.
    pub agent_does_not_listen: bool,
    /// It downloads no faster than this, in bytes a second.
    pub download_rate: Option<u64>,
    /// What its agent lies about.
    pub lie: Option<Lie>,
    /// Its disk takes no more bytes than this.
    pub disk_full_after: Option<u64>,
    /// This step fails.
    pub fail_step: Option<String>,
    /// The next so many downloads of kernels and ramdisks break off.
    pub break_downloads: u32,
}

/// What an inventory can be wrong about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// It lists no disk.
    NoDisks,
    /// Its network ports have other addresses.
    OtherPorts,
    /// It has half the memory.
    HalfTheMemory,
    /// It is no inventory at all.
    Nonsense,
}

impl FaultSet {
    /// How late DHCP requests arrive.
    pub(crate) fn dhcp_delay(&self) -> Option<Duration> {
        self.delay_dhcp_millis.map(Duration::from_millis)
    }
}
