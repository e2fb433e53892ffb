//! The conductors that share the clusters and VMs.

use jiff::Timestamp;
use serde::Deserialize;

/// A conductor with its share of the work.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Conductor {
    pub hostname: String,
    /// `working`, `rebalancing`, `draining`, `drained` or `dead`.
    pub state: String,
    /// The version of its program; empty if the program is older than this field.
    pub version: String,
    /// How many clusters belong to it.
    pub clusters: u64,
    /// How many VMs belong to it.
    pub machines: u64,
    /// How many snapshots belong to it.
    pub snapshots: u64,
    /// How many drains of hosts belong to it.
    pub drains: u64,
    pub last_seen_at: Timestamp,
}
