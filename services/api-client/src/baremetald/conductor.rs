//! The conductors that share the nodes.

use jiff::Timestamp;
use serde::Deserialize;

/// A conductor with its share of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Conductor {
    pub hostname: String,
    pub conductor_groups: Vec<String>,
    /// `working`, `rebalancing`, `draining`, `drained` or `dead`.
    pub state: String,
    /// The version of its program; empty if the program is older than this field.
    pub version: String,
    /// How many nodes belong to it.
    pub nodes: u64,
    /// How many of these have work or a change in progress.
    pub busy_nodes: u64,
    /// How many turns it still has for nodes that belong to others by now.
    pub turns_of_others: u32,
    pub last_seen_at: Timestamp,
}
