//! The state of a machine that survives a restart of the emulator.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use crate::boot::{BootDevice, BootOverride, OverrideDuration};
use crate::setup::Setup;
use crate::spec::Firmware;
use crate::subscriptions::Subscription;
use crate::volumes::Volume;

/// The power, next boot, virtual media, firmware settings, RAID volumes, subscriptions and changed password of a machine. Logs, sessions and faults are not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersistedState {
    pub on: bool,
    pub(crate) boot: Option<Boot>,
    #[serde(default)]
    pub(crate) virtual_cd: Option<OverrideDuration>,
    /// Images, each with the id of its drive.
    pub(crate) media: Vec<(String, Url)>,
    #[serde(default)]
    pub(crate) setup: Setup,
    #[serde(default)]
    pub(crate) volumes: Vec<Volume>,
    #[serde(default)]
    pub(crate) subscriptions: Vec<Subscription>,
    #[serde(default)]
    pub(crate) password: Option<String>,
}

/// A boot override, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Boot {
    device: BootDevice,
    lasting: OverrideDuration,
    mode: Option<Firmware>,
    http_uri: Option<Url>,
    /// Milliseconds until the override expires.
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
