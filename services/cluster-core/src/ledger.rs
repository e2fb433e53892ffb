//! What a cluster or a person's machine owns in the cloud.

use jiff::Timestamp;

use crate::{ClusterUuid, LedgerUuid, VmUuid};

/// Who owns something in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A cluster.
    Cluster(ClusterUuid),
    /// A person's machine.
    Vm(VmUuid),
}

impl From<ClusterUuid> for Holder {
    fn from(cluster: ClusterUuid) -> Holder {
        Holder::Cluster(cluster)
    }
}

impl From<VmUuid> for Holder {
    fn from(vm: VmUuid) -> Holder {
        Holder::Vm(vm)
    }
}

/// A cloud object of a cluster's or a machine's. It is written before the object is asked for, and struck out once the cloud no longer
/// has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its id, from which nothing else is derived.
    pub id: LedgerUuid,
    /// Whose.
    pub of: Holder,
    /// What it is for: a `Key` as text, `port/default-worker-3`, or what the cluster made itself: `service-load-balancer`,
    /// `volume`.
    pub kind: String,
    /// The object's name in the cloud.
    pub name: String,
    /// The object's id in the cloud, once known.
    pub cloud_id: Option<String>,
    /// How far it is.
    pub state: LedgerState,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Option<Timestamp>,
}

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerState {
    /// It may be there or not: a create is to be asked for.
    Intended,
    /// The cloud has said that it is there.
    Present,
    /// A delete is to be asked for.
    Leaving,
}

impl LedgerState {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            LedgerState::Intended => "intended",
            LedgerState::Present => "present",
            LedgerState::Leaving => "leaving",
        }
    }

    /// What was written so.
    pub fn read(raw: &str) -> Option<LedgerState> {
        let all = [LedgerState::Intended, LedgerState::Present, LedgerState::Leaving];
        all.into_iter().find(|it| it.as_str() == raw)
    }
}
