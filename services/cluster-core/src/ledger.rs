//! The ledger of cloud objects that each cluster and VM owns.

use jiff::Timestamp;

use crate::{ClusterUuid, LedgerUuid, VmUuid};

/// The owner of a cloud object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerOwner {
    Cluster(ClusterUuid),
    Vm(VmUuid),
}

impl From<ClusterUuid> for LedgerOwner {
    fn from(cluster: ClusterUuid) -> LedgerOwner {
        LedgerOwner::Cluster(cluster)
    }
}

impl From<VmUuid> for LedgerOwner {
    fn from(vm: VmUuid) -> LedgerOwner {
        LedgerOwner::Vm(vm)
    }
}

/// A cloud object that a cluster or VM owns.
///
/// The entry is written before the object is created, so that a crash never leaves an object without an entry. It is removed once the cloud
/// no longer has the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Nothing is derived from this id.
    pub id: LedgerUuid,
    pub of: LedgerOwner,
    /// A [`crate::Key`] as text, such as `port/default-worker-3`.
    pub kind: String,
    /// The object's name in the cloud, by which a repeated create finds it.
    pub name: String,
    /// The object's id in the cloud, once known.
    pub cloud_id: Option<String>,
    pub state: LedgerState,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
}

words::words! {
    /// How far an entry is between creation and deletion, with the word in the database and the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LedgerState {
        /// The object may exist or not: it is being created.
        Intended = "intended",
        /// The cloud has confirmed that the object exists.
        Present = "present",
        Deleting = "leaving",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_by_its_name() {
        for state in LedgerState::ALL {
            assert_eq!(LedgerState::find(state.as_str()), Some(state));
        }
        assert_eq!(LedgerState::find("deleting"), None);
    }
}
