//! Conditions of a cluster in Cluster API's sense: whether each is true and, if not, why and what to do.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A statement about a cluster that is true or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    pub status: ConditionStatus,
    /// A word for programs, such as `NoQuorum`.
    pub reason: String,
    /// The reason for people. Empty when the condition is true and there is no warning.
    pub message: String,
    /// Advice for people; empty when waiting is enough.
    pub next_action: String,
    /// Whether waiting does not help: somebody has to act.
    pub is_final: bool,
    /// Since when the condition has this status.
    pub since: Timestamp,
}

/// Whether a condition is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    True,
    False,
    /// The cloud or Kubernetes could not be asked.
    Unknown,
}

impl ConditionKind {
    /// Whether programs of version 0.1.0 can read the condition.
    pub(crate) fn is_known_to_0_1(self) -> bool {
        self != ConditionKind::CertificatesValid
    }
}

words::words! {
    /// The statements about a cluster, in the order in which they usually become true.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum ConditionKind {
        /// The network, the router and the security groups are ready.
        NetworkReady = "NetworkReady",
        /// The load balancers are ready and have the right members.
        LoadBalancerReady = "LoadBalancerReady",
        /// All servers exist, and none too many.
        InfrastructureReady = "InfrastructureReady",
        /// All members have become Kubernetes nodes.
        BootstrapReady = "BootstrapReady",
        /// A majority of the control-plane members is ready.
        ControlPlaneAvailable = "ControlPlaneAvailable",
        NodesHealthy = "NodesHealthy",
        AddOnsApplied = "AddOnsApplied",
        /// No CA rotation is in progress: all members hold the same certificate authorities.
        AuthoritiesSettled = "AuthoritiesSettled",
        /// No certificate of a member has ended. Warns of certificates that nothing renewed in time.
        CertificatesValid = "CertificatesValid",
        /// The DNS names lead to the right addresses.
        DnsReady = "DnsReady",
    }
}
