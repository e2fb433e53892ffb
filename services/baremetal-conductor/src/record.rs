//! Writes the result of a turn.

use baremetal_core::{HistoryEntry, IllegalEvent, Node, NodeUpdate, Problem, ended_allocation};
use baremetal_store::StoreError;
use reconcile::{Requeue, TurnErrorKind};
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

impl reconcile::TurnError for TurnError {
    fn kind(&self) -> TurnErrorKind {
        match self {
            TurnError::Store(StoreError::Stale) => TurnErrorKind::Stale,
            TurnError::Store(error) if error.is_transient() => TurnErrorKind::Database,
            TurnError::Store(_) | TurnError::Illegal(_) | TurnError::Machine(_) => {
                TurnErrorKind::Failed
            }
        }
    }
}

impl TurnContext {
    /// Writes the node with its history, and returns the node with its new version.
    pub(crate) async fn write(&self, before: &Node, change: NodeUpdate) -> Result<Node, TurnError> {
        let NodeUpdate { node: mut after, history } = change;
        after.updated_at = Some(self.now());
        let written = match ended_allocation(before, &after) {
            Some(ended) => self.store.update_node_and_end(&after, &history, ended).await?,
            None => self.store.update_node(&after, &history).await?,
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
        Ok(written)
    }

    /// Writes the node with its history, and returns when the next turn is due.
    pub(crate) async fn record(
        &self,
        before: &Node,
        after: Node,
        history: &[HistoryEntry],
    ) -> Result<Requeue, TurnError> {
        let needs_turns = after.needs_turns();
        self.write(before, NodeUpdate { node: after, history: history.to_vec() }).await?;
        Ok(if needs_turns { Requeue::Now } else { Requeue::OnChange })
    }
}
