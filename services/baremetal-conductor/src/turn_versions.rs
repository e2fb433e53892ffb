//! The version of each node's record at its last turn.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baremetal_core::NodeUuid;

/// The version of each node's record at its last turn.
#[derive(Default)]
pub(crate) struct TurnVersions(Mutex<HashMap<NodeUuid, i64>>);

impl TurnVersions {
    pub(crate) fn note(&self, id: NodeUuid, version: i64) {
        self.versions().insert(id, version);
    }

    /// Returns whether a turn had read the node.
    pub(crate) fn forget(&self, id: NodeUuid) -> bool {
        self.versions().remove(&id).is_some()
    }

    /// Returns whether no turn has read this version.
    pub(crate) fn misses(&self, id: NodeUuid, version: i64) -> bool {
        self.versions().get(&id) != Some(&version)
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<NodeUuid, i64>> {
        // A panic while the lock is held leaves the map intact, so the poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
