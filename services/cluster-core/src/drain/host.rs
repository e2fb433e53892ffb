//! What was seen of a host.

use jiff::Timestamp;

use super::Known;

/// What was seen of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSeen {
    /// When.
    pub at: Timestamp,
    /// Its compute service.
    pub service: ServiceSeen,
    /// The servers on it, and those that are on their way from it.
    pub servers: Vec<ServerOnHost>,
}

/// Whether the scheduler puts servers on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceSeen {
    /// It does.
    Enabled,
    /// It does not, because of a drain of ours.
    DisabledByUs,
    /// It does not, for somebody else said so.
    DisabledByOthers,
}

/// A server on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOnHost {
    /// Its id in the cloud.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// Whose it is.
    pub carried: Carried,
    /// What it is doing.
    pub condition: ServerCondition,
}

/// Whose a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Ours: this.
    Ours {
        /// What it is.
        what: Known,
        /// Whether its pods can go elsewhere: it is a cluster's, and not of its control plane.
        is_worker: bool,
    },
    /// Somebody else's.
    Foreign,
}

/// What a server is doing, as far as moving goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerCondition {
    /// It runs, or is paused: it can be moved as it is.
    Runs,
    /// It is moving to another host.
    Moves,
    /// Something else is being done to it, after which it can be asked.
    Busy,
    /// It is switched off, or otherwise uses nothing of its host but its disk.
    Off,
    /// It is in a state in which it cannot be moved.
    Failed(String),
}
