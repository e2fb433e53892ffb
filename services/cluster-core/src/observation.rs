//! An observation of a cluster: what the cloud and Kubernetes showed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{IngressRule, Key, MemberName, ServerDetails};

/// An observation of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterObservation {
    /// When the cloud was observed; `None`: never, so nothing may be concluded from missing objects.
    pub at: Option<Timestamp>,
    pub objects: BTreeMap<Key, CloudObject>,
    /// The reports of each member, and of Kubernetes about it.
    pub machines: BTreeMap<MemberName, MemberObservation>,
    /// The add-ons in the cluster; `None` when its API does not answer.
    pub add_ons: Option<AddOnsObservation>,
    pub authorities: CaRotationObservation,
    /// During a roll, the control-plane members whose API server and etcd are ready.
    pub serving: BTreeSet<MemberName>,
    /// During a roll, the tag of kube-proxy's image; `None` when the cluster has no kube-proxy.
    pub kube_proxy: Option<String>,
    /// The members on hosts that are drained.
    pub drained: BTreeSet<MemberName>,
    /// The objects that the cloud failed to make, found by this observation or by a call since.
    pub failures: BTreeMap<Key, Failure>,
    /// The objects whose creation waits because the cloud failed at them before.
    pub held: BTreeMap<Key, BackingOff>,
    /// The member that was uncordoned after a reboot.
    pub uncordoned: Option<MemberName>,
    /// Why the cluster's API gave no usable answer; `None` when it answered or was not called.
    pub api_silence: Option<String>,
    /// A problem that stops all work, when its reason is known.
    pub problem: Option<Problem>,
}

/// The add-ons that an observation found in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddOnsObservation {
    /// Add-ons that are missing or differ from their manifest, each with the reason.
    pub missing: BTreeMap<String, String>,
    /// The generation of the credential that the add-ons use.
    pub credential: Option<u32>,
}

/// An object that the cloud has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudObject {
    /// The id of the object in the cloud.
    pub id: String,
    pub state: CloudObjectState,
    /// The address of a port, or of a floating IP.
    pub address: Option<IpAddr>,
    pub facts: CloudObjectDetails,
}

/// The state of an object in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudObjectState {
    /// The cloud creates or changes the object.
    Working,
    Ready,
    /// The cloud gave up on the object, with this message.
    Failed(String),
    Deleting,
}

/// The properties of an object that can change after its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CloudObjectDetails {
    /// The object has no such properties.
    #[default]
    None,
    /// The rules of a security group.
    Rules(BTreeSet<IngressRule>),
    /// The addresses of the members of a load balancer, or of a DNS record.
    Addresses(BTreeSet<IpAddr>),
    /// The state of a server.
    Server(ServerDetails),
}

/// The part of an observation that concerns a CA rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaRotationObservation {
    /// The revision that each member last reported.
    pub held: BTreeMap<MemberName, u32>,
    /// The revision for which the pods in kube-system were restarted, after all members held it.
    pub renewed: Option<u32>,
    /// Why the pods were not restarted, when the reason is known.
    pub trouble: Option<String>,
}

/// A failure that one observation or one call showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The cloud's message.
    pub why: String,
    /// The id of the failed object, when the cloud had created one.
    pub object: Option<String>,
}

/// An object whose next attempt is not due yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackingOff {
    /// How often the cloud failed at the object.
    pub times: u32,
    /// The cloud's message at the last failure.
    pub why: String,
    /// When the next attempt is due.
    pub until: Timestamp,
}

/// A problem that stops work on a cluster or VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A word for programs: `QuotaExceeded`, `CloudUnreachable`.
    pub reason: String,
    /// The reason for people.
    pub message: String,
    /// Advice for people.
    pub next_action: String,
    /// Whether waiting does not help: somebody has to act.
    pub is_final: bool,
}

/// The reports of a member, and of Kubernetes about the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberObservation {
    /// How far the member is in becoming a Kubernetes node.
    pub bootstrap: Bootstrap,
    pub node: NodeHealth,
    pub is_etcd_member: bool,
    /// Whether its pods have been evicted.
    pub is_drained: bool,
    /// When the creation of its server was requested, or since when its reports have been received if that is later.
    pub asked_at: Option<Timestamp>,
}

/// How far a member is in becoming a Kubernetes node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The member has not reported yet.
    Silent,
    /// The member reported this step.
    At(String),
    /// The member is a Kubernetes node.
    Done,
    /// The member reported that it failed, with this reason.
    Failed(String),
}

/// The health of a Kubernetes node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeHealth {
    /// The cluster's API does not answer.
    Unknown,
    /// Kubernetes has no such node.
    Absent,
    Ready,
    NotReady {
        since: Timestamp,
    },
}

impl Default for MemberObservation {
    fn default() -> Self {
        MemberObservation {
            bootstrap: Bootstrap::Silent,
            node: NodeHealth::Absent,
            is_etcd_member: false,
            is_drained: false,
            asked_at: None,
        }
    }
}

impl CloudObject {
    /// Whether the object is in state [`CloudObjectState::Ready`].
    pub fn is_ready(&self) -> bool {
        self.state == CloudObjectState::Ready
    }
}
