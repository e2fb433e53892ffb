//! Writes the result of a turn.

use baremetal_core::{HistoryEntry, IllegalEvent, Node, Problem, ended_allocation};
use baremetal_store::StoreError;
use reconcile::Requeue;
use tracing::info;

use crate::context::TurnContext;

/// Why a turn ended without a result. The next turn is the retry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The machine, its BMC or its agent did not do as asked.
    #[error("{}", .0.cause)]
    Machine(Problem),
}

impl From<Problem> for TurnError {
    fn from(problem: Problem) -> TurnError {
        TurnError::Machine(problem)
    }
}

impl TurnContext {
    /// Writes the node with its history, and returns when the next turn is due.
    pub(crate) async fn record(
        &self,
        before: &Node,
        mut after: Node,
        history: &[HistoryEntry],
    ) -> Result<Requeue, TurnError> {
        after.updated_at = Some(self.now());
        match ended_allocation(before, &after) {
            Some(ended) => self.store.update_node_and_end(&after, history, ended).await?,
            None => self.store.update_node(&after, history).await?,
        };
        if before.provision_state != after.provision_state {
            info!(
                state.from = %before.provision_state, state.to = %after.provision_state,
                "node {} is now {}", after.id, after.provision_state
            );
        }
        if after.work.is_none() && before.work.is_some() {
            self.agents.forget(after.id);
            self.sightings.forget_failed_calls(after.id);
            if after.place.is_some() {
                self.rack_changed.notify_one();
            }
        }
        if before.is_joining() && !after.is_joining() && after.place.is_some() {
            self.rack_changed.notify_one();
        }
        // The next turn is due immediately as long as anything is left to do, which includes waiting for the end of a lease.
        let more = after.work.is_some()
            || after.power_request.is_some()
            || after.lending.is_some()
            || after.leaving.is_some()
            || after.looks_at_cloud();
        Ok(if more { Requeue::Now } else { Requeue::OnChange })
    }
}
