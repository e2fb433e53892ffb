//! Boot overrides: the device a machine boots from next.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use crate::spec::Firmware;

/// The device that the firmware boots now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootChoice {
    /// The device of the boot override. `None` means the firmware's own boot order.
    pub device: Option<BootDevice>,
    /// The boot mode of the override. `None` if the override names none. Firmware without a compatibility module ignores the mode.
    pub mode: Option<Firmware>,
    /// The URL that an HTTP boot fetches. `None` means that DHCP supplies the URL.
    pub http_uri: Option<Url>,
}

/// A boot device of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootDevice {
    /// Network boot by DHCP and TFTP.
    Pxe,
    /// Network boot by DHCP and HTTP.
    Http,
    Disk,
    /// The CD drive, including a virtual one.
    Cdrom,
    /// A USB stick, including a virtual one.
    Usb,
    /// A floppy, or the first removable medium.
    Floppy,
    /// The setup program of the firmware.
    Setup,
    Diagnostics,
}

/// How long an override is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverrideDuration {
    Once,
    /// Until the override is cleared.
    Always,
}

/// A boot override as the BMC stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BootOverride {
    pub(crate) device: BootDevice,
    pub(crate) lasting: OverrideDuration,
    pub(crate) mode: Option<Firmware>,
    pub(crate) http_uri: Option<Url>,
    /// When the override expires unless a power command comes first (IPMI 2.0 table 28-14, parameter 3).
    pub(crate) lapses_at: Option<Instant>,
}

impl BootOverride {
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.lapses_at.is_none_or(|at| now < at)
    }
}
