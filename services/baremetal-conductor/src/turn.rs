//! One turn for one node: observe, plan, then act or record.

use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{
    AgentSeen, Failure, HistoryEntry, IllegalEvent, LendingStep, Node, NodeIdent, NodeUuid,
    Observed, PowerSeen, Problem, Reason, Step, Task, Work, WorkUuid, boot_again, elapsed,
    ended_allocation, fail_work, finish_work, plan, plan_lending, power_step_done, start_next_task,
};
use baremetal_store::StoreError;
use jiff::Timestamp;
use reconcile::{Requeue, time_left};
use tracing::{debug, error, info, instrument, warn};

use crate::handle::TurnContext;
use crate::joining::earlier;
use crate::problem::chain;

/// How long a node waits for its next turn when the database does not answer.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// After this many refused calls to an agent in a row, the node's history gets an entry.
const RECORD_AFTER_CALLS: u32 = 3;

/// Why a turn ended without a result. The next turn is the retry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// Runs one turn for one node. The turn is the only writer of `provision_state` once work has begun.
#[instrument(skip_all, fields(node.id = %id))]
pub(crate) async fn turn(id: NodeUuid, context: Arc<TurnContext>) -> Requeue {
    match context.turn(id).await {
        Ok(requeue) => requeue,
        // Another writer was faster: read the node again immediately.
        Err(TurnError::Store(StoreError::Stale)) => Requeue::Now,
        Err(TurnError::Store(error)) if error.is_transient() => {
            context.watch.failed();
            warn!(error = chain(&error), "a turn for node {id} waits for the database");
            Requeue::After(STORE_RETRY_PAUSE)
        }
        Err(error) => {
            error!(error = chain(&error), "the turn of node {id} failed and will be retried");
            Requeue::After(STORE_RETRY_PAUSE)
        }
    }
}

impl TurnContext {
    async fn turn(&self, id: NodeUuid) -> Result<Requeue, TurnError> {
        let Some(node) = self.store.find_node(&NodeIdent::Id(id)).await? else {
            self.forget(id);
            return Ok(Requeue::OnChange);
        };
        self.turn_versions.note(id, node.version);
        self.watch.answered(Timestamp::now());
        let seen = self.observe(&node).await?;
        let now = Timestamp::now();
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
                match next {
                    Requeue::Now => Ok(Requeue::Now),
                    Requeue::After(_) | Requeue::OnChange => {
                        Ok(earlier(next, self.join(&node, now).await?))
                    }
                }
            }
            Step::Wait { until } => {
                self.record_refused_calls(&node, &seen, now).await?;
                Ok(Requeue::After(time_left(until, now)))
            }
            Step::Act(action) => {
                info!(action.name = action.name(), "performing {} on node {id}", action.name());
                match self.perform(&node, action, &seen).await? {
                    Ok(requeue) => Ok(requeue),
                    Err(problem) => self.retry_or_fail(&node, problem).await,
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

    /// Begins the next task. If no task is left, ends the work in the same write.
    pub(crate) async fn next_task(&self, node: &Node) -> Result<Requeue, TurnError> {
        let node = match node.work.as_ref().and_then(Work::task) {
            Some(Task::AwaitInventory) => match self.take_inventory(node).await? {
                Ok(inspected) => inspected,
                Err(failure) => return self.fail(node, failure).await,
            },
            Some(_) | None => node.clone(),
        };
        self.set_progress(node.id, None);
        let now = Timestamp::now();
        let (next, entry) = start_next_task(&node, now)?;
        let mut history: Vec<HistoryEntry> = entry.into_iter().collect();
        if next.work.as_ref().is_some_and(|work| work.task().is_some()) {
            return self.record(&node, next, &history).await;
        }
        let (done, entry) = finish_work(&next, WorkUuid::new_v4(), now)?;
        history.push(entry);
        self.record(&node, done, &history).await
    }

    /// Handles a problem in an action: a transient problem is retried until the BMC timeout, and every other problem fails the work or the
    /// change of power.
    async fn retry_or_fail(&self, node: &Node, problem: Problem) -> Result<Requeue, TurnError> {
        let began = node.work.as_ref().map_or(self.watch.since(), |work| work.task_started_at);
        let began = began.max(self.watch.since());
        let late = elapsed(began, Timestamp::now()) > self.settings.timeouts.bmc;
        if problem.transient && !late {
            debug!(problem = problem.cause, "will try again");
            return Ok(Requeue::After(self.settings.timeouts.poll_every));
        }
        if node.work.is_none() {
            let entry = HistoryEntry::failed(node, node, problem.cause.clone(), Timestamp::now());
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

    /// Fails the work. The machine is left as it is.
    async fn fail(&self, node: &Node, mut failure: Failure) -> Result<Requeue, TurnError> {
        if failure.reason == Reason::NoCallback {
            failure.cause += &format!(" ({})", self.sightings.of(node.id).boot_trail());
        }
        warn!(cause = failure.cause, "the work on node {} failed", node.id);
        self.set_progress(node.id, None);
        let (failed, entry) = fail_work(node, failure, Timestamp::now())?;
        self.record(node, failed, &[entry]).await
    }

    async fn power_step_done(&self, node: &Node) -> Result<Requeue, TurnError> {
        self.record(node, power_step_done(node), &[]).await
    }

    /// Writes the node with its history, and returns when the next turn is due.
    pub(crate) async fn record(
        &self,
        before: &Node,
        mut after: Node,
        history: &[HistoryEntry],
    ) -> Result<Requeue, TurnError> {
        after.updated_at = Some(Timestamp::now());
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

/// Returns the node with the observed power state of its machine.
fn with_power(node: Node, seen: &Observed) -> Node {
    match seen.power {
        PowerSeen::Is(power) => Node { power_state: Some(power), ..node },
        PowerSeen::NotAsked | PowerSeen::Failed(_) => node,
    }
}
