//! Writes the change that a turn has decided.

use baremetal_core::{HistoryEntry, IllegalEvent, Node, NodeUpdate, ended_allocation};
use baremetal_store::StoreError;
use jiff::Timestamp;
use lease::LeaseStage;
use reconcile::TurnErrorKind;
use replicas::LeasePassed;
use tracing::{info, warn};

use crate::context::TurnContext;

/// Why a turn ended without a result. The next turn is the retry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    #[error(transparent)]
    LeasePassed(#[from] LeasePassed),
}

impl reconcile::TurnError for TurnError {
    fn kind(&self) -> TurnErrorKind {
        match self {
            TurnError::Store(StoreError::Stale) => TurnErrorKind::Stale,
            TurnError::Store(error) if error.is_transient() => TurnErrorKind::Database,
            TurnError::LeasePassed(_) => TurnErrorKind::Elsewhere,
            TurnError::Store(_) | TurnError::Illegal(_) => TurnErrorKind::Failed,
        }
    }
}

impl TurnContext {
    /// Writes the node with its history, and returns the node with its new version.
    ///
    /// A process that was stopped and has lost its lease writes nothing: it may have decided by the time that has passed.
    pub(crate) async fn write(&self, before: &Node, update: NodeUpdate) -> Result<Node, TurnError> {
        self.membership.fence().check()?;
        let NodeUpdate {
            node: mut after,
            history,
            stage,
            obstacle,
            listed,
            inspection,
            mut children,
        } = update;
        let now = self.now();
        if let Some(listed) = listed {
            self.store.keep_listed_steps(after.id, &listed).await?;
        }
        after.updated_at = Some(now);
        children.iter_mut().for_each(|(child, _)| child.updated_at = Some(now));
        // The end of an inspection and the beginning of a step are neither a stage of a lease nor the end of an allocation.
        let written = match (stage, ended_allocation(before, &after), &inspection) {
            (Some(stage), _, _) => self.write_with_notices(&after, &history, stage, now).await?,
            (None, Some(ended), _) => {
                self.store.update_node_and_end(&after, &history, ended).await?
            }
            (None, None, Some(changes)) => {
                self.store.update_node_and_inspection(&after, &history, changes).await?
            }
            (None, None, None) => {
                self.store.update_node_and_children(&after, &history, &children).await?
            }
        };
        children.iter().for_each(|(child, _)| self.wake(child.id));
        if let Some(obstacle) = obstacle {
            self.sightings.note_obstacle(after.id, obstacle);
        }
        if before.provision_state != after.provision_state {
            info!(
                state.from = %before.provision_state, state.to = %after.provision_state,
                "node {} is now {}", after.id, after.provision_state
            );
        }
        let task = |node: &Node| node.work.as_ref().map(|work| (work.id, work.cursor));
        if task(before) != task(&after) {
            self.set_progress(after.id, None);
        }
        if after.work.is_none() && before.work.is_some() {
            self.agents.forget(after.id);
            self.sightings.forget_failed_calls(after.id);
            self.note_progress(&after);
        }
        if before.is_joining() && !after.is_joining() {
            self.note_progress(&after);
        }
        Ok(written)
    }

    /// Has the rack of a machine examined that has made progress.
    fn note_progress(&self, node: &Node) {
        if let Some(place) = &node.place {
            self.wake_rack(&place.rack);
        }
    }

    /// Writes the node with a stage of its lease's end, its history, and the notices about the stage.
    async fn write_with_notices(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        stage: LeaseStage,
        now: Timestamp,
    ) -> Result<Node, TurnError> {
        let reported = history.first().map_or("", |entry| &entry.event);
        let letters = self.stage_letters(node, stage, reported, now);
        let written = self.store.update_node_and_notify(node, history, &letters, now).await;
        let (written, lost) = written?;
        if lost > 0 {
            warn!("too many notices are waiting: {lost} notices of node {} are not sent", node.id);
        }
        info!("node {}: {reported}", node.label());
        Ok(written)
    }
}
