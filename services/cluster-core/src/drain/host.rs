//! An observation of a compute host.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Member, OwnServer};

/// An observation of a compute host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostObservation {
    pub at: Timestamp,
    pub service: ComputeServiceState,
    /// The id of the compute service in the cloud.
    pub service_id: String,
    pub members: BTreeSet<Member>,
    /// The servers on the host, and the servers that are moving away from it.
    pub servers: Vec<ServerOnHost>,
}

/// Whether the scheduler places servers on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeServiceState {
    Enabled,
    /// Disabled by a drain of clusterd.
    DisabledByUs,
    /// Disabled by an operator: the drain must not enable it again.
    DisabledByOthers,
}

/// A server on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOnHost {
    /// The id of the server in the cloud.
    pub id: String,
    pub name: String,
    pub carried: ServerOwner,
    pub condition: ServerCondition,
}

/// The owner of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOwner {
    /// A cluster or VM of clusterd.
    Ours {
        what: OwnServer,
        /// Whether the server is a worker, whose pods can run on other nodes.
        is_worker: bool,
    },
    /// A server that does not belong to clusterd.
    Foreign,
}

/// The state of a server, as far as live migration is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerCondition {
    /// Running or paused: Nova can migrate the server.
    Runs,
    /// Migrating to another host.
    Moves,
    /// Nova is doing something else with it, and can migrate it afterwards.
    Busy,
    /// Off: the server uses only the disk of its host.
    Off,
    /// In a state in which Nova cannot migrate the server, with the reason.
    Failed(String),
}
