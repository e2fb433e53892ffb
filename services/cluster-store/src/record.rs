//! Records of the store that are not in `cluster-core`.

use std::net::IpAddr;

use cluster_core::{
    CertificateUuid, ClaimUuid, Cluster, ClusterUuid, Event, MemberName, NodeGroup, QuotaUuid,
    Snapshot, Vm, VmEvent,
};
use database::outbox::Letter;
use jiff::Timestamp;

/// The resources that a query returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Project(String),
    All,
}

impl Scope {
    pub(crate) fn project(&self) -> Option<&str> {
        match self {
            Scope::Project(project) => Some(project),
            Scope::All => None,
        }
    }
}

/// The VMs and snapshots that a query returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmScope {
    /// The VMs and snapshots of one person in a project.
    Person { project: String, user: String },
    /// The VMs and snapshots of one project.
    Project(String),
    /// The VMs and snapshots of all projects.
    All,
}

impl VmScope {
    pub(crate) fn project(&self) -> Option<&str> {
        match self {
            VmScope::Person { project, .. } | VmScope::Project(project) => Some(project),
            VmScope::All => None,
        }
    }

    pub(crate) fn person(&self) -> Option<&str> {
        match self {
            VmScope::Person { user, .. } => Some(user),
            VmScope::Project(_) | VmScope::All => None,
        }
    }
}

/// A change of a cluster, written as a whole or not at all.
#[derive(Clone, Debug)]
pub struct ClusterChange {
    /// The changed cluster, with the version that was read.
    pub cluster: Cluster,
    pub added: Vec<NodeGroup>,
    /// The changed node groups, with the versions that were read.
    pub changed: Vec<NodeGroup>,
    /// Node groups to delete.
    pub removed: Vec<NodeGroup>,
    pub events: Vec<Event>,
    /// The user whose limits apply besides the project's, and who owns the added quota use; `None`: the owner of the cluster.
    pub by: Option<String>,
    /// Notices to send.
    pub letters: Vec<Letter>,
}

impl ClusterChange {
    /// Makes a change of the cluster's record alone.
    pub fn of(cluster: Cluster) -> Self {
        let (added, changed, removed, events) = (vec![], vec![], vec![], vec![]);
        ClusterChange { cluster, added, changed, removed, events, by: None, letters: vec![] }
    }

    /// Whether the change leaves everything as it is. `read` is the cluster that was read.
    pub fn changes_nothing(&self, read: &Cluster) -> bool {
        let groups = [&self.added, &self.changed, &self.removed];
        self.cluster == *read
            && groups.into_iter().all(Vec::is_empty)
            && self.events.is_empty()
            && self.letters.is_empty()
    }

    /// Returns the user whose limits apply.
    pub(crate) fn by(&self) -> &str {
        self.by.as_deref().unwrap_or(&self.cluster.user)
    }
}

/// A change of a VM, written as a whole or not at all.
#[derive(Clone, Debug)]
pub struct VmChange {
    /// The changed VM, with the version that was read.
    pub vm: Vm,
    pub copy: Option<Snapshot>,
    pub events: Vec<VmEvent>,
    /// Notices to send.
    pub letters: Vec<Letter>,
}

impl VmChange {
    /// Makes a change without events and notices.
    pub fn of(vm: Vm) -> Self {
        VmChange { vm, copy: None, events: Vec::new(), letters: Vec::new() }
    }
}

/// An event of a cluster or a VM.
#[derive(Clone, Debug)]
pub enum AnyEvent {
    Cluster(Event),
    Vm(VmEvent),
}

/// A change of a snapshot, written as a whole or not at all.
#[derive(Clone, Debug)]
pub struct SnapshotChange {
    /// The changed snapshot, with the version that was read.
    pub snapshot: Snapshot,
    /// Events of the VM, dropped when the VM no longer exists.
    pub events: Vec<VmEvent>,
}

/// A quota of a project in Magnum's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub id: QuotaUuid,
    pub project: String,
    /// Magnum's name of the resource: `Cluster`.
    pub resource: String,
    /// -1 for unlimited.
    pub hard_limit: i64,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
}

/// The single-use credential by which a server fetches its Ignition config. Only its digest is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub id: ClaimUuid,
    pub cluster: ClusterUuid,
    pub machine: MemberName,
    /// SHA-256 of the credential, in hex.
    pub digest: String,
    /// The data from which the config is rendered when the claim is redeemed, without secrets.
    pub facts: String,
    pub expires_at: Timestamp,
    pub redeemed_at: Option<Timestamp>,
    /// The address of the server that redeemed the claim.
    pub redeemed_by: Option<IpAddr>,
}

/// The outcome of an attempt to redeem a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedeemOutcome {
    /// Redeemed by this attempt.
    First,
    /// Redeemed a moment ago from the same address, and the member has not reported since: the answer was lost.
    Again,
    /// As `Again`, but the config was already handed out as often as allowed.
    TooOften,
    /// Refused: the claim is unknown, expired, or was redeemed before.
    No,
}

/// The claim and the last report of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReport {
    pub machine: MemberName,
    /// The claim that the member redeems for its config.
    pub claim: ClaimUuid,
    pub redeemed_at: Option<Timestamp>,
    pub redeemed_by: Option<IpAddr>,
    /// The last report; `None`: the member has not reported yet.
    pub said: Option<BootstrapReport>,
    /// The CA revision that the member holds; `None`: it has never asked for one.
    pub authorities: Option<u32>,
}

/// A report of a member about its bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapReport {
    /// The step of the bootstrap: `control-plane`, `join`.
    pub step: String,
    /// Whether the step failed. The member tries again by itself.
    pub failed: bool,
    pub message: String,
    pub at: Timestamp,
}

/// A certificate that a cluster's certificate authority signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub id: CertificateUuid,
    /// The cluster whose certificate authority signed.
    pub cluster: ClusterUuid,
    pub subject: String,
    /// The user who requested it.
    pub issued_to: String,
    pub created_at: Timestamp,
    pub not_after: Timestamp,
}

/// A clusterd that works on this database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    pub hostname: String,
    /// When the first report came.
    pub started_at: Timestamp,
    /// When the last report came.
    pub seen_at: Timestamp,
    /// How many reports came.
    pub reports: i64,
}
