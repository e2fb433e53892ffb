//! The explanation of a node's state.

use jiff::Timestamp;
use serde::Deserialize;

use super::rack::{Hypervisor, Task};

/// The activity of a node, its reason, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Explanation {
    pub summary: String,
    /// The time since which the node is in its state.
    pub since: Timestamp,
    pub place: Option<Location>,
    pub task: Option<Task>,
    pub hypervisor: Option<Hypervisor>,
    pub last_seen: LastSeen,
    pub next: String,
}

/// The location of a node in a rack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Location {
    pub rack: String,
    pub position: u64,
}

/// The last observation of a machine through each of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LastSeen {
    pub bmc: Option<Observation>,
    pub dhcp: Option<Observation>,
    pub tftp: Option<Observation>,
    pub http: Option<Observation>,
    pub agent: Option<Observation>,
}

/// An observation of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Observation {
    pub at: Timestamp,
    pub what: String,
}
