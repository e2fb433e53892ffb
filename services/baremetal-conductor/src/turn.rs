//! One turn for one node, which consists of parts: the machine, or else the drain or the lease, and then the cloud.

use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{Node, NodeIdent, NodeUuid, PasswordRotation, is_lease_stage_due};
use reconcile::{Requeue, RetryPauses, begin_span, end_span, execute, requeue};
use tracing::{debug, instrument};

use crate::context::TurnContext;
use crate::joining::JoinTurn;
use crate::leaving::LeavingTurn;
use crate::lending::LeaseTurn;
use crate::perform::MachineTurn;
use crate::record::TurnError;

/// How long a node waits for its next turn after a turn that failed.
const RETRY_PAUSES: RetryPauses =
    RetryPauses { database: Duration::from_secs(1), failed: Duration::from_secs(1) };

/// Runs one turn for one node. The turn is the only writer of `provision_state` once work has begun.
#[instrument(skip_all, fields(node.id = %id))]
pub(crate) async fn turn(id: NodeUuid, context: Arc<TurnContext>) -> Requeue {
    let running = context.membership.begin_turn(id);
    let ended = tokio::select! {
        biased;
        () = running.has_to_end() => {
            debug!("the turn of node {id} ended, because another conductor may work on the node");
            context.let_go(id);
            return Requeue::After(RETRY_PAUSES.failed);
        }
        ended = context.turn(id) => ended,
    };
    requeue(ended, format_args!("node {id}"), &context.watch, RETRY_PAUSES)
}

impl TurnContext {
    async fn turn(&self, id: NodeUuid) -> Result<Requeue, TurnError> {
        let Some(node) = self.store.find_node(&NodeIdent::Id(id)).await? else {
            self.forget(id);
            return Ok(Requeue::OnChange);
        };
        if !self.membership.admits(node.id, &node.conductor_group) {
            self.let_go(id);
            return Ok(Requeue::OnChange);
        }
        self.turn_versions.note(id, node.version);
        self.watch.answered(self.now());
        let id = ("bedplate.node.id", id);
        let mut span = begin_span(&self.settings.tracer, node.trace.as_ref(), "node turn", id);
        span.set("bedplate.node.provision_state", node.provision_state.as_str());
        let ended = span.run(self.turn_of(node)).await;
        end_span(span, &ended);
        ended
    }

    async fn turn_of(&self, node: Node) -> Result<Requeue, TurnError> {
        // Work that holds waits for an operator, or for the end of the lease.
        let is_held = node.provision_state.is_held();
        if is_held || is_lease_stage_due(&node, &self.settings.lending.schedule, self.now()) {
            return Ok(execute(&LeaseTurn(self), node).await?.1);
        }
        let is_changing = node.power_request.is_some()
            || node.boot_setting_request.is_some()
            || node.password_rotation.as_ref().is_some_and(PasswordRotation::is_in_progress)
            || !node.network_changes.are_done();
        if node.work.is_some() || is_changing {
            return Ok(execute(&MachineTurn(self), node).await?.1);
        }
        self.idle_turn(node).await
    }

    /// Runs the turn of a node without work: the drain that a request waits for, or else the node's lease, and then the cloud that the
    /// machine joins or leaves.
    async fn idle_turn(&self, node: Node) -> Result<Requeue, TurnError> {
        // Most nodes neither wait for a drain nor look at a cloud, so their turns have no room for these parts.
        let (node, next) = match &node.leaving {
            Some(_) => Box::pin(execute(&LeavingTurn(self), node)).await?,
            None => execute(&LeaseTurn(self), node).await?,
        };
        if next == Requeue::Now || !node.looks_at_cloud() {
            return Ok(next);
        }
        let (_, then) = Box::pin(execute(&JoinTurn(self), node)).await?;
        Ok(next.min(then))
    }
}

#[cfg(test)]
mod tests;
