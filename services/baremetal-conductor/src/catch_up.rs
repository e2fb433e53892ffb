//! Gives a turn to each node whose record is newer than its last turn.
//!
//! The API wakes the node when it records a request. The wake is lost if the database commits the record and the answer is lost, or if a client
//! hangs up between the commit and the wake. Nodes that moved to this conductor from another one have had no turn here either.

use std::sync::Arc;

use baremetal_store::StoreError;
use reconcile::Mutation;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::TurnContext;
use crate::problem::chain;

/// Looks for such nodes until `stop` is cancelled; the first look resumes all work in progress.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    loop {
        match look(&context).await {
            Ok(0) => {}
            Ok(nodes) => info!(nodes, "{nodes} nodes have records that no turn has read"),
            Err(error) => warn!(error = chain(&error), "cannot list the nodes that have work"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.membership.share_changed() => {}
            () = sleep(context.settings.look_every) => {}
        }
    }
}

async fn look(context: &TurnContext) -> Result<usize, StoreError> {
    let mut woken = 0;
    for node in context.store.unfinished_nodes().await? {
        if !context.membership.has(&node.id, &node.group) {
            context.let_go(node.id);
            continue;
        }
        if Mutation::NoCatchUp.is_made() {
            continue;
        }
        if context.turn_versions.misses(node.id, node.version) {
            context.queue.wake(node.id);
            woken += 1;
        }
    }
    Ok(woken)
}
