//! Compute hosts, the servers on them, and their drains.

use serde::Deserialize;

use crate::with_json::WithJson;

/// A compute host in a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HostSummary {
    pub host: String,
    /// `None` if the cloud does not know the host any more.
    pub service: Option<ComputeService>,
    pub drain: Option<Drain>,
}

/// The compute service of a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// Whether the scheduler uses the host: `enabled` or `disabled`.
    pub status: String,
    /// Whether the service reports: `up` or `down`.
    pub state: String,
}

/// All drains.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Drains {
    pub drains: Vec<WithJson<Drain>>,
}

/// The drain of a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Drain {
    pub host: String,
    pub state: String,
    pub asked_by: String,
    /// The servers of clusterd that are still on the host.
    pub left: Vec<RemainingServer>,
    /// The number of other servers on the host.
    pub foreign: u64,
    pub problem: Option<String>,
}

/// A server that is still on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RemainingServer {
    pub server_id: String,
    pub name: String,
    pub fate: String,
    pub why: String,
}

/// Whether a host may be drained, and its drain if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DrainCheck {
    pub drain: Option<Drain>,
}

/// A compute host with its servers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Host {
    pub host: String,
    pub service: ComputeService,
    pub clusters: Vec<HostCluster>,
    pub machines: Vec<WithJson<HostVm>>,
    /// The number of servers that clusterd does not manage.
    pub foreign: u64,
    pub drain: Option<Drain>,
}

/// A cluster with members on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HostCluster {
    pub uuid: String,
    pub name: String,
    pub machines: Vec<WithJson<HostMember>>,
}

/// A member of a cluster on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HostMember {
    /// The name of the member in its cluster.
    pub machine: String,
    /// The name of the server.
    pub name: String,
    pub role: Option<String>,
    pub is_etcd_member: bool,
    pub server_id: String,
    pub status: String,
}

/// A VM on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HostVm {
    pub name: String,
    pub server_id: String,
    pub status: String,
}

/// The places of a cluster, VM or server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Places {
    pub places: Vec<WithJson<Place>>,
}

/// A server, its host, and the cluster or VM that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Place {
    pub server_id: String,
    pub name: String,
    pub status: String,
    /// `None` if the server is not on a host yet.
    pub host: Option<String>,
    pub cluster: Option<PlaceCluster>,
    /// The name of the member in its cluster.
    pub machine: Option<String>,
    pub role: Option<String>,
    pub is_etcd_member: bool,
    pub own: Option<HostVm>,
}

/// The cluster that a server belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlaceCluster {
    pub name: String,
}
