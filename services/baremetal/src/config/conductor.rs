//! The conductor: how much it does at once, how long things may take, and how BMCs are treated.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use hardware::{AllowedHost, Network};
use jiff::SignedDuration;
use serde::Deserialize;

/// How the conductor behaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductorConfig {
    /// The name it is listed under; the machine's host name unless told otherwise.
    pub hostname: Option<String>,
    /// How many nodes have a turn at once.
    pub workers: NonZeroUsize,
    /// How often the power states of machines at rest are refreshed.
    pub power_sync_every: SignedDuration,
    /// How many BMCs are asked at once for that.
    pub power_sync_at_once: NonZeroUsize,
}

impl Default for ConductorConfig {
    fn default() -> Self {
        ConductorConfig {
            hostname: None,
            workers: NonZeroUsize::MIN.saturating_add(255),
            power_sync_every: SignedDuration::from_secs(60),
            power_sync_at_once: NonZeroUsize::MIN.saturating_add(255),
        }
    }
}

/// How long things may take, as `10s`, `5m` or `1h 30m`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsConfig {
    /// For a BMC to answer and to do as asked.
    pub bmc: SignedDuration,
    /// For a machine to switch on or off.
    pub power: SignedDuration,
    /// How long a BMC that accepted a change of power is given before it is asked again.
    pub ask_again: SignedDuration,
    /// From power-on to the agent's report.
    pub boot: SignedDuration,
    /// For one command of the agent, such as writing an image.
    pub command: SignedDuration,
    /// For an agent that does not answer.
    pub silence: SignedDuration,
    /// How often to look at what is awaited.
    pub poll_every: SignedDuration,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        TimeoutsConfig {
            bmc: SignedDuration::from_secs(60),
            power: SignedDuration::from_secs(120),
            ask_again: SignedDuration::from_secs(20),
            boot: SignedDuration::from_mins(30),
            command: SignedDuration::from_hours(2),
            silence: SignedDuration::from_mins(5),
            poll_every: SignedDuration::from_secs(1),
        }
    }
}

/// How BMCs are treated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BmcConfig {
    /// How long one request may take.
    pub request_timeout: SignedDuration,
    /// How many requests a BMC gets in a second, on average.
    pub requests_per_second: u32,
    /// How many it may get at once after a rest.
    pub burst: u32,
    /// Whether a node may say that its BMC's certificate is not to be verified.
    pub allow_unverified: bool,
    /// PEM file of further authorities that sign BMCs' certificates.
    pub authorities: Option<PathBuf>,
    /// The networks in which BMCs are; unless given, anywhere but on loopback, link-local and multicast addresses.
    pub networks: Option<Vec<Network>>,
}

/// Where images come from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesConfig {
    /// The names, addresses and networks of the servers that images come from; unless given, any but loopback, link-local and
    /// multicast addresses.
    pub hosts: Option<Vec<AllowedHost>>,
}

impl Default for BmcConfig {
    fn default() -> Self {
        BmcConfig {
            request_timeout: SignedDuration::from_secs(20),
            requests_per_second: 10,
            burst: 20,
            allow_unverified: false,
            authorities: None,
            networks: None,
        }
    }
}

/// How much serial consoles may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsolesConfig {
    /// How many may look at one node's at once.
    pub viewers_per_node: NonZeroUsize,
    /// At how many one person may look at once, where people have names.
    pub viewed_by_one: NonZeroUsize,
    /// How many are open at once.
    pub sessions: NonZeroUsize,
    /// How long a machine's port is held after the last viewer left.
    pub linger: SignedDuration,
}

impl Default for ConsolesConfig {
    fn default() -> Self {
        ConsolesConfig {
            viewers_per_node: NonZeroUsize::MIN.saturating_add(7),
            viewed_by_one: NonZeroUsize::MIN.saturating_add(15),
            sessions: NonZeroUsize::MIN.saturating_add(63),
            linger: SignedDuration::from_secs(20),
        }
    }
}
