//! What is stored beside the core's own records.

use std::net::IpAddr;

use cluster_core::{
    CertificateUuid, ClaimUuid, Cluster, ClusterUuid, Event, MachineRef, NodeGroup, QuotaUuid,
    Snapshot, Vm, VmEvent,
};
use database::outbox::Letter;
use jiff::Timestamp;

/// Whose things a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one project.
    Project(String),
    /// Everybody's.
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

/// Whose machines and snapshots a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmScope {
    /// Those of one person in a project.
    Person {
        /// The project.
        project: String,
        /// Who of it.
        user: String,
    },
    /// Those of one project.
    Project(String),
    /// Everybody's.
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

/// A change of a cluster, to be written whole or not at all.
#[derive(Clone, Debug)]
pub struct Change {
    /// The cluster as it is to be.
    pub cluster: Cluster,
    /// Node groups to add.
    pub added: Vec<NodeGroup>,
    /// Node groups as they are to be.
    pub changed: Vec<NodeGroup>,
    /// Node groups to delete.
    pub removed: Vec<NodeGroup>,
    /// What to say of it.
    pub events: Vec<Event>,
    /// Whose limits hold for it beside the project's, and who has what is new; the cluster's owner, where nobody else asked for it.
    pub by: Option<String>,
    /// Who is told of it outside.
    pub letters: Vec<Letter>,
}

impl Change {
    /// A change of the cluster's own record alone.
    pub fn of(cluster: Cluster) -> Self {
        let (added, changed, removed, events) = (vec![], vec![], vec![], vec![]);
        Change { cluster, added, changed, removed, events, by: None, letters: vec![] }
    }

    /// Who asks for it.
    pub(crate) fn by(&self) -> &str {
        self.by.as_deref().unwrap_or(&self.cluster.user)
    }
}

/// A change of a machine of a person, to be written whole or not at all.
#[derive(Clone, Debug)]
pub struct VmChange {
    /// The machine as it is to be.
    pub vm: Vm,
    /// A snapshot of it to be added.
    pub copy: Option<Snapshot>,
    /// What to say of it.
    pub events: Vec<VmEvent>,
    /// Who is told of it outside.
    pub letters: Vec<Letter>,
}

impl VmChange {
    /// A change of which there is nothing to say.
    pub fn of(vm: Vm) -> Self {
        VmChange { vm, copy: None, events: Vec::new(), letters: Vec::new() }
    }
}

/// Something that happened, and to what.
#[derive(Clone, Debug)]
pub enum Happened {
    /// To a cluster.
    Cluster(Event),
    /// To a machine of a person.
    Vm(VmEvent),
}

/// A change of a snapshot, to be written whole or not at all.
#[derive(Clone, Debug)]
pub struct SnapshotChange {
    /// The snapshot as it is to be.
    pub snapshot: Snapshot,
    /// What to say of its machine, if that is there.
    pub events: Vec<VmEvent>,
}

/// How many of something a project may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its id.
    pub id: QuotaUuid,
    /// Whose.
    pub project: String,
    /// Of what: `Cluster`.
    pub resource: String,
    /// How many.
    pub hard_limit: i64,
    /// When it was set.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Option<Timestamp>,
}

/// What lets one machine fetch its configuration once. The claim itself is not stored, only its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its id.
    pub id: ClaimUuid,
    /// Whose machine.
    pub cluster: ClusterUuid,
    /// Which machine.
    pub machine: MachineRef,
    /// SHA-256 of what has to be shown, in hex.
    pub digest: String,
    /// What the machine's configuration is made of when it is fetched. Nothing of it is secret.
    pub facts: String,
    /// Until when it can be redeemed.
    pub expires_at: Timestamp,
    /// When it was.
    pub redeemed_at: Option<Timestamp>,
    /// From where.
    pub redeemed_by: Option<IpAddr>,
}

/// What became of a claim that somebody showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// It is redeemed by this.
    First,
    /// It was redeemed from the same address a moment ago, and the machine has not been heard of since: the answer was lost.
    Again,
    /// As before, and that has been done as often as it is done.
    TooOften,
    /// It cannot be redeemed: it is unknown, too old, or was redeemed before.
    No,
}

/// What a machine said of itself last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReport {
    /// Which machine.
    pub machine: MachineRef,
    /// The claim that it got its configuration for.
    pub claim: ClaimUuid,
    /// When it got it.
    pub redeemed_at: Option<Timestamp>,
    /// From where it asked.
    pub redeemed_by: Option<IpAddr>,
    /// What it said last; nothing, if it has not been heard of.
    pub said: Option<Said>,
    /// The revision of the authorities that it holds; nothing, if it has never asked for another.
    pub authorities: Option<u32>,
}

/// One report of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The step that it speaks of: `control-plane`, `join`.
    pub step: String,
    /// Whether that failed; it is tried again by the machine itself.
    pub failed: bool,
    /// For people.
    pub message: String,
    /// When it was said.
    pub at: Timestamp,
}

/// A certificate that was signed for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its id.
    pub id: CertificateUuid,
    /// By whose authority.
    pub cluster: ClusterUuid,
    /// Its subject.
    pub subject: String,
    /// The user who asked.
    pub issued_to: String,
    /// When it was signed.
    pub created_at: Timestamp,
    /// Until when it is valid.
    pub not_after: Timestamp,
}

/// A clusterd that works on this database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    /// Where it runs.
    pub hostname: String,
    /// When it was first heard of.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub seen_at: Timestamp,
    /// How often it was.
    pub reports: i64,
}
