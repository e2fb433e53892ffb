//! The part of a turn for a machine that joins or leaves an OpenStack.

use baremetal_core::{CloudSeen, Failure, JoinStep, Node, plan_join};
use jiff::Timestamp;
use reconcile::{Requeue, time_left};
use tracing::{debug, info, warn};

use crate::context::TurnContext;
use crate::record::TurnError;

/// How many times longer the pause between looks at the cloud is than between looks at a BMC.
const CLOUD_POLL_FACTOR: u32 = 3;

impl TurnContext {
    /// Makes one step of joining or leaving the cloud, if the node is on its way. Each state is recorded before the cloud is called because
    /// of it.
    pub(crate) async fn join(&self, node: &Node, now: Timestamp) -> Result<Requeue, TurnError> {
        let Some(host) = node.hypervisor.as_ref().filter(|_| node.looks_at_cloud()) else {
            return Ok(Requeue::OnChange);
        };
        let seen = self.look_at_cloud(host).await;
        match plan_join(host, &seen, self.watch.since(), now) {
            JoinStep::Act(action) => {
                info!("asking the cloud for host {}: {action:?}", host.host);
                match self.ask_cloud(host, &action).await {
                    Ok(()) => Ok(Requeue::After(self.settings.timeouts.poll_every)),
                    Err(problem) => {
                        debug!(problem = problem.cause, "the call to the cloud failed");
                        let trouble = CloudSeen::Failed(problem);
                        let step = plan_join(host, &trouble, self.watch.since(), now);
                        self.end_join_turn(node, step, now).await
                    }
                }
            }
            step @ (JoinStep::Rest
            | JoinStep::Wait { .. }
            | JoinStep::Record(_)
            | JoinStep::GiveUp(_)
            | JoinStep::Gone) => self.end_join_turn(node, step, now).await,
        }
    }

    async fn end_join_turn(
        &self,
        node: &Node,
        step: JoinStep,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        match step {
            JoinStep::Rest => Ok(Requeue::OnChange),
            JoinStep::Wait { until } => {
                let left = time_left(until, now);
                debug!("the host of node {} has made no progress yet", node.id);
                Ok(Requeue::After(left.min(self.settings.timeouts.poll_every * CLOUD_POLL_FACTOR)))
            }
            JoinStep::Record(to) => {
                let (gone, entry) = node.joining(*to, now);
                if let Some(entry) = &entry {
                    info!("node {}: {}", node.label(), entry.event);
                }
                self.record(node, gone, entry.as_slice()).await
            }
            JoinStep::GiveUp(failure) => self.give_up_joining(node, failure, now).await,
            JoinStep::Gone => {
                let (gone, entry) = node.left_the_cloud(now);
                info!("node {}: {}", node.label(), entry.event);
                self.record(node, gone, &[entry]).await
            }
            // The call was refused, and the plan for a failed call is to wait or to give up. Should the plan ask for a call, the next turn
            // makes it.
            JoinStep::Act(_) => Ok(Requeue::After(self.settings.timeouts.poll_every)),
        }
    }

    async fn give_up_joining(
        &self,
        node: &Node,
        failure: Failure,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        warn!(cause = failure.cause, "node {} did not join the cloud", node.label());
        let (given_up, entry) = node.not_joined(failure, now);
        self.record(node, given_up, &[entry]).await
    }
}

/// Returns the earlier of two due times.
pub(crate) fn earlier(one: Requeue, other: Requeue) -> Requeue {
    match (one, other) {
        (Requeue::Now, _) | (_, Requeue::Now) => Requeue::Now,
        (Requeue::After(one), Requeue::After(other)) => Requeue::After(one.min(other)),
        (Requeue::After(some), Requeue::OnChange) | (Requeue::OnChange, Requeue::After(some)) => {
            Requeue::After(some)
        }
        (Requeue::OnChange, Requeue::OnChange) => Requeue::OnChange,
    }
}
