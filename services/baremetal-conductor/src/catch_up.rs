//! Gives a turn to each node whose record is newer than its last turn.
//!
//! The API wakes the node when it records a request. The wake is lost if the database commits the record and the answer is lost, or if a client
//! hangs up between the commit and the wake.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baremetal_core::NodeUuid;
use baremetal_store::StoreError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::handle::{RunError, TurnContext};
use crate::problem::chain;

/// The version of each node's record at its last turn.
#[derive(Default)]
pub(crate) struct TurnVersions(Mutex<HashMap<NodeUuid, i64>>);

impl TurnVersions {
    /// Notes that a turn has read this version.
    pub(crate) fn note(&self, id: NodeUuid, version: i64) {
        self.versions().insert(id, version);
    }

    pub(crate) fn forget(&self, id: NodeUuid) {
        self.versions().remove(&id);
    }

    /// Returns whether no turn has read this version.
    fn misses(&self, id: NodeUuid, version: i64) -> bool {
        self.versions().get(&id) != Some(&version)
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<NodeUuid, i64>> {
        // A panic while the lock is held leaves the map intact, so the poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for such nodes until `stop` is cancelled; the first look resumes all work in progress.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    loop {
        match look(&context).await {
            Ok(0) => {}
            Ok(nodes) => info!(nodes, "{nodes} nodes have records that no turn has read"),
            Err(error) => warn!(error = chain(&error), "cannot list the nodes that have work"),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = sleep(context.settings.look_every) => {}
        }
    }
}

async fn look(context: &TurnContext) -> Result<usize, StoreError> {
    let mut woken = 0;
    for (id, version) in context.store.unfinished_nodes().await? {
        if context.turn_versions.misses(id, version) {
            context.queue.wake(id);
            woken += 1;
        }
    }
    Ok(woken)
}
