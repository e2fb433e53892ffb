//! Clusters, their conditions, events and cloud objects.

use jiff::Timestamp;
use serde::Deserialize;

use crate::shared::Lease;
use crate::with_json::WithJson;

/// A cluster in a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Cluster {
    pub uuid: String,
    pub name: String,
    pub master_count: u64,
    pub node_count: u64,
    pub status: String,
    pub health_status: String,
}

/// The answer to the request for a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedCluster {
    pub uuid: String,
}

/// A cluster with its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterStatus {
    pub status: String,
    pub status_reason: Option<String>,
    pub lease: Option<Lease>,
    pub upgrade: Option<ClusterUpgrade>,
    pub conditions: Vec<Condition>,
}

/// An upgrade of a cluster in progress.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterUpgrade {
    /// The version that members get.
    pub kubernetes: String,
    pub paused: bool,
    pub waits_for: Option<String>,
    /// The remaining replacements, in order.
    pub steps: Vec<UpgradeStep>,
}

/// The replacement of the members of a node group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpgradeStep {
    pub nodegroup: String,
    pub members: u64,
    pub at_once: u64,
    pub from: String,
    pub to: String,
    /// The parameters that change besides the version.
    pub changes: Vec<String>,
}

/// The plan of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpgradePlan {
    pub kubernetes: String,
    /// The replacements, in order.
    pub steps: Vec<UpgradeStep>,
    /// `None` if the quota is unknown.
    pub fits: Option<bool>,
    pub fits_reason: Option<String>,
    /// How many seconds the replacements take at least.
    pub seconds_at_least: Option<u64>,
    pub warnings: Vec<String>,
}

/// A condition of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub message: String,
    pub next_action: String,
}

/// A cluster's lease after a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterLease {
    pub lease: Option<Lease>,
}

/// The events of a cluster or VM, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Events {
    pub events: Vec<WithJson<Event>>,
}

/// An event of a cluster or VM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// `None` for an event that is not recorded.
    pub id: Option<String>,
    pub at: Timestamp,
    pub severity: String,
    pub reason: String,
    pub message: String,
}

/// The cloud objects of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ledger {
    pub ledger: Vec<LedgerEntry>,
}

/// A cloud object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LedgerEntry {
    pub object: String,
    pub name: String,
    pub cloud_id: Option<String>,
    pub state: String,
}

/// The members of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Members {
    pub machines: Vec<Member>,
}

/// A member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub name: String,
    pub role: String,
    /// `None` until the server exists.
    pub server_id: Option<String>,
}

/// A node group of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NodeGroup {
    pub uuid: String,
    pub name: String,
    pub role: String,
    pub is_default: bool,
    pub node_count: i64,
}

/// A template of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterTemplate {
    pub uuid: String,
    pub name: Option<String>,
}

/// The plan of a cluster that was not created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Plan {
    pub objects: Vec<PlannedObject>,
    /// `None` if the project's quota in the cloud is unknown.
    pub shortages: Option<Vec<Shortage>>,
    /// `None` if the project's quota in the cloud is unknown.
    pub fits: Option<bool>,
    pub fits_reason: Option<String>,
}

/// A resource of which the project's quota in the cloud is too small.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Shortage {
    pub resource: String,
}

/// A cloud object that a cluster would have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlannedObject {
    pub object: String,
    pub name: String,
}

impl Condition {
    /// Whether the condition is met.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}
