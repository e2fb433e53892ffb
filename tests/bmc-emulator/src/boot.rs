//! Where a machine has been told to boot from.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use crate::spec::Firmware;

/// What firmware boots now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootChoice {
    /// The device an override names; `None` is the firmware's own order.
    pub device: Option<BootDevice>,
    /// The kind of boot the override asked for, if it said; firmware without a compatibility module ignores it.
    pub mode: Option<Firmware>,
    /// What an HTTP boot was told to fetch, if anything; otherwise DHCP says.
    pub http_uri: Option<Url>,
}

/// A device an override can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootDevice {
    /// The network, by DHCP and TFTP.
    Pxe,
    /// The network, by DHCP and HTTP.
    Http,
    /// The first disk.
    Disk,
    /// The CD drive, a virtual one included.
    Cdrom,
    /// A USB stick, a virtual one included.
    Usb,
    /// A floppy, or whatever removable medium comes first.
    Floppy,
    /// The firmware's setup.
    Setup,
    /// The diagnostic partition.
    Diagnostics,
}

/// How long an override holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lasting {
    /// For one boot.
    Once,
    /// Until it is taken back.
    Always,
}

/// A boot override as a BMC holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BootOverride {
    pub(crate) device: BootDevice,
    pub(crate) lasting: Lasting,
    pub(crate) mode: Option<Firmware>,
    pub(crate) http_uri: Option<Url>,
    /// When it lapses by itself if no power command follows (IPMI 2.0 table 28-14, parameter 3).
    pub(crate) lapses_at: Option<Instant>,
}

impl BootOverride {
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.lapses_at.is_none_or(|at| now < at)
    }
}
