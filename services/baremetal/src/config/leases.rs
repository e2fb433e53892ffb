//! The sections `[leases]`, `[allocations]` and `[reservations]`.

use std::num::NonZeroU32;

use lease::{LeaseSchedule, Terms};
use serde::Deserialize;

/// How long nodes are lent, and the stages at the end of a lease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeasesConfig {
    /// The default, longest and shortest lease: `{ default = "7d", longest = "30d", shortest = "1h" }`. Without a default every caller has
    /// to name a length. The shortest lease is one hour by default.
    pub nodes: Terms,
    /// The warnings and the undo window, after which the machine is erased. Machines have no snapshots.
    pub schedule: LeaseSchedule,
}

/// The section `[allocations]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AllocationsConfig {
    /// How many allocations a project may have, not counting failed ones.
    pub per_project: NonZeroU32,
}

impl Default for AllocationsConfig {
    fn default() -> Self {
        AllocationsConfig { per_project: NonZeroU32::MIN.saturating_add(99) }
    }
}

/// The section `[reservations]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReservationsConfig {
    /// How many nodes a project may reserve at the same time; 0 by default.
    pub nodes_per_project: u32,
}
