//! One turn for one node: observe, plan, then act or record.

use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{
    AgentSeen, HistoryEntry, LendingStep, Node, NodeIdent, NodeUuid, Observed, PowerSeen, Problem,
    Step, WorkUuid, boot_again, elapsed, finish_work, plan, plan_lending, power_step_done,
};
use jiff::Timestamp;
use reconcile::{Requeue, RetryPauses, execute, requeue, time_left};
use tracing::{debug, info, instrument, warn};

use crate::context::TurnContext;
use crate::joining::JoinTurn;
use crate::record::TurnError;

/// How long a node waits for its next turn after a turn that failed.
const RETRY_PAUSES: RetryPauses =
    RetryPauses { database: Duration::from_secs(1), failed: Duration::from_secs(1) };

/// After this many refused calls to an agent in a row, the node's history gets an entry.
const RECORD_AFTER_CALLS: u32 = 3;

/// Runs one turn for one node. The turn is the only writer of `provision_state` once work has begun.
#[instrument(skip_all, fields(node.id = %id))]
pub(crate) async fn turn(id: NodeUuid, context: Arc<TurnContext>) -> Requeue {
    let ended = context.turn(id).await;
    requeue(ended, format_args!("node {id}"), &context.watch, RETRY_PAUSES)
}

impl TurnContext {
    async fn turn(&self, id: NodeUuid) -> Result<Requeue, TurnError> {
        let Some(node) = self.store.find_node(&NodeIdent::Id(id)).await? else {
            self.forget(id);
            return Ok(Requeue::OnChange);
        };
        self.turn_versions.note(id, node.version);
        self.watch.answered(self.now());
        let seen = self.observe(&node).await?;
        let now = self.now();
        let lending = plan_lending(&node, &self.settings.lending.ladder, now);
        if let LendingStep::Take(step) = lending {
            return self.take(&node, step, now).await;
        }

        match plan(&node, &seen, &self.settings.timeouts, now) {
            Step::Rest => {
                let next = match &node.leaving {
                    Some(leaving) => self.apply_drain_step(&node, leaving, now).await?,
                    None => self.apply_lending_step(&node, lending, now).await?,
                };
                if next == Requeue::Now || !node.looks_at_cloud() {
                    return Ok(next);
                }
                let (_, then) = execute(&JoinTurn(self), node).await?;
                Ok(next.min(then))
            }
            Step::Wait { until } => {
                self.record_refused_calls(&node, &seen, now).await?;
                Ok(Requeue::After(time_left(until, now)))
            }
            Step::Act(action) => {
                info!(action.name = action.name(), "performing {} on node {id}", action.name());
                match self.perform(&node, action, &seen).await {
                    Err(TurnError::Machine(problem)) => self.retry_or_fail(&node, problem).await,
                    performed => performed,
                }
            }
            Step::NextTask => self.next_task(&with_power(node, &seen)).await,
            Step::Finish => {
                let (done, entry) = finish_work(&node, WorkUuid::new_v4(), now)?;
                self.record(&node, done, &[entry]).await
            }
            Step::BootAgain => {
                let (again, entry) = boot_again(&node, WorkUuid::new_v4(), now)?;
                warn!("node {}: {}", node.label(), entry.event);
                self.record(&node, again, &[entry]).await
            }
            Step::GiveUp(failure) => self.fail(&node, failure).await,
            Step::PowerStepDone => self.power_step_done(&node).await,
            Step::PowerGivenUp(failure) => {
                warn!(cause = failure.cause, "the change of power of node {id} failed");
                let entry = HistoryEntry::failed(&node, &node, failure.to_string(), now);
                let given_up = Node { power_request: None, failure: Some(failure), ..node.clone() };
                self.record(&node, given_up, &[entry]).await
            }
        }
    }

    /// Handles a problem in an action: a transient problem is retried until the BMC timeout, and every other problem fails the work or the
    /// change of power.
    async fn retry_or_fail(&self, node: &Node, problem: Problem) -> Result<Requeue, TurnError> {
        let began = node.work.as_ref().map_or(self.watch.since(), |work| work.task_started_at);
        let began = began.max(self.watch.since());
        let late = elapsed(began, self.now()) > self.settings.timeouts.bmc;
        if problem.transient && !late {
            debug!(problem = problem.cause, "will try again");
            return Ok(Requeue::After(self.settings.timeouts.poll_every));
        }
        if node.work.is_none() {
            let entry = HistoryEntry::failed(node, node, problem.cause.clone(), self.now());
            let given_up =
                Node { power_request: None, failure: Some(problem.into()), ..node.clone() };
            return self.record(node, given_up, &[entry]).await;
        }
        self.fail(node, problem.into()).await
    }

    /// Records in the node's history why its work does not continue although its agent reports. The entry is written once, until the agent
    /// answers again.
    async fn record_refused_calls(
        &self,
        node: &Node,
        seen: &Observed,
        now: Timestamp,
    ) -> Result<(), TurnError> {
        let AgentSeen::Refuses { calls: RECORD_AFTER_CALLS.., problem, .. } = &seen.agent else {
            return Ok(());
        };
        if !self.sightings.are_failed_calls_recorded(node.id) {
            let told = format!("the agent reports, but calls to it fail: {}", problem.cause);
            warn!("node {}: {told}", node.label());
            let entry = HistoryEntry::changed(node, node, told, now);
            self.record(node, node.clone(), &[entry]).await?;
            self.sightings.note_failed_calls_recorded(node.id);
        }
        Ok(())
    }

    async fn power_step_done(&self, node: &Node) -> Result<Requeue, TurnError> {
        self.record(node, power_step_done(node), &[]).await
    }
}

/// Returns the node with the observed power state of its machine.
fn with_power(node: Node, seen: &Observed) -> Node {
    match seen.power {
        PowerSeen::Is(power) => Node { power_state: Some(power), ..node },
        PowerSeen::NotAsked | PowerSeen::Failed(_) => node,
    }
}

#[cfg(test)]
mod tests;
