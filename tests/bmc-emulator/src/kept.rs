//! What a machine and its BMC are besides what they are made of: for an emulator that goes on where it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use crate::boot::{BootDevice, BootOverride, Lasting};
use crate::spec::Firmware;

/// A machine's power, next boot and virtual media. Its logs, sessions and faults are not of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Whether it runs.
    pub on: bool,
    pub(crate) boot: Option<Boot>,
    /// Images by the ids of their drives.
    pub(crate) media: Vec<(String, Url)>,
}

/// A boot override.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Boot {
    device: BootDevice,
    lasting: Lasting,
    mode: Option<Firmware>,
    http_uri: Option<Url>,
    /// In how many milliseconds it lapses by itself.
    lapses_in: Option<u64>,
}

impl Boot {
    pub(crate) fn of(boot: BootOverride, now: Instant) -> Boot {
        let left = |at: Instant| at.saturating_duration_since(now).as_millis();
        let BootOverride { device, lasting, mode, http_uri, lapses_at } = boot;
        let lapses_in = lapses_at.map(|at| u64::try_from(left(at)).unwrap_or(u64::MAX));
        Boot { device, lasting, mode, http_uri, lapses_in }
    }

    pub(crate) fn held_from(self, now: Instant) -> BootOverride {
        let Boot { device, lasting, mode, http_uri, lapses_in } = self;
        let lapses_at = lapses_in.map(|left| now + Duration::from_millis(left));
        BootOverride { device, lasting, mode, http_uri, lapses_at }
    }
}
