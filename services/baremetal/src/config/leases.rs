//! For how long nodes are lent, and to whom whole ones.

use std::num::NonZeroU32;

use lease::{Ladder, Terms};
use serde::Deserialize;

/// How long nodes are lent, and what happens then.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeasesConfig {
    /// By default, at most, and at least: `{ default = "7d", longest = "30d", shortest = "1h" }`. Without a default whoever asks has to
    /// say; the shortest is an hour, unless told.
    pub nodes: Terms,
    /// Warnings, a time in which the end can be undone; then the machine is erased. No copy is kept of machines.
    pub ladder: Ladder,
}

/// How many nodes projects may ask for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AllocationsConfig {
    /// How many allocations each project may have at once, besides those that failed.
    pub per_project: NonZeroU32,
}

impl Default for AllocationsConfig {
    fn default() -> Self {
        AllocationsConfig { per_project: NonZeroU32::MIN.saturating_add(99) }
    }
}

/// Whole nodes that projects may have for a time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReservationsConfig {
    /// How many each project may have at once; none unless told otherwise.
    pub nodes_per_project: u32,
}
