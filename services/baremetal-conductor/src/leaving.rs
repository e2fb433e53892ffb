//! The part of a turn for a node that waits for the drain of its compute host. `baremetal-core` decides what clusterd is asked.

use baremetal_core::{
    AfterDrain, DrainSeen, Leaving, LeavingEnd, LeavingStage, LeavingStep, Node, Reason, Verb,
    WorkUuid, ask, ask_power, held, plan_leaving, stays,
};
use jiff::Timestamp;
use reconcile::Requeue;
use tracing::{info, warn};

use crate::handle::World;
use crate::turn::TurnError;

impl World {
    /// Asks clusterd the question of the current stage, and records the result. The stage was recorded before, so after a crash the next
    /// turn repeats the same question.
    pub(crate) async fn leave_on(
        &self,
        node: &Node,
        leaving: &Leaving,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let seen = self.drain_seen(leaving).await;
        match plan_leaving(leaving, &seen) {
            LeavingStep::Enter(stage) => {
                let entered = Leaving { stage, ..leaving.clone() };
                self.record(node, Node { leaving: Some(entered), ..node.clone() }, &[]).await
            }
            LeavingStep::Over => {
                self.record(node, Node { leaving: None, ..told_no_more(node) }, &[]).await
            }
            LeavingStep::Proceed => self.proceed(node, leaving, now).await,
            LeavingStep::Wait(why) => {
                let rest = Requeue::After(self.settings.timeouts.poll_every);
                let Some((told, entry)) = why.as_deref().and_then(|why| held(node, why, now))
                else {
                    return Ok(rest);
                };
                warn!("node {}: {}", node.label(), entry.event);
                self.record(node, told, &[entry]).await?;
                Ok(rest)
            }
            LeavingStep::Refuse(why, end) => {
                warn!("the request to node {} is refused: {why}", node.label());
                let (stayed, entry) = stays(node, &why, end, now);
                self.record(node, stayed, &[entry]).await
            }
        }
    }

    async fn drain_seen(&self, leaving: &Leaving) -> DrainSeen {
        // Without a configured clusterd no host is drained.
        let Some(clusters) = &self.settings.clusters else { return DrainSeen::NoHost };
        match leaving.stage {
            LeavingStage::Wanted | LeavingStage::Waiting(_) => clusters.show(&leaving.host).await,
            LeavingStage::Asking(_) => {
                let asking = clusters.drain(&leaving.host, &leaving.forced);
                self.store.tripwire().around("clusterd: drain", asking).await
            }
            LeavingStage::Ending => {
                let asking = clusters.undrain(&leaving.host);
                self.store.tripwire().around("clusterd: end of a drain", asking).await
            }
        }
    }

    /// Carries out the request that waited for the drain, unless something forbids it by now.
    async fn proceed(
        &self,
        node: &Node,
        leaving: &Leaving,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let host = &leaving.host;
        let free = Node { leaving: None, ..told_no_more(node) };
        let begun = |verb| {
            let asked = ask(&free, verb, WorkUuid::new_v4(), now);
            asked.map(|(to, entry)| (to, vec![entry.by(leaving.asked_by.as_deref())]))
        };
        let begun = match leaving.then {
            AfterDrain::Maintenance => Ok((free, Vec::new())),
            AfterDrain::Undeploy => begun(Verb::Undeploy),
            AfterDrain::Rebuild => begun(Verb::Rebuild),
            AfterDrain::Power { change, timeout } => {
                ask_power(&free, change, now + timeout).map(|to| (to, Vec::new()))
            }
        };
        match begun {
            Ok((begun, history)) => {
                info!(
                    "host {host} is drained: node {} continues with {:?}",
                    node.label(),
                    leaving.then
                );
                self.record(node, begun, &history).await
            }
            Err(refusal) => {
                warn!(%refusal, "host {host} is drained, but the request to node {} is refused", node.label());
                let end = match leaving.stage {
                    LeavingStage::Asking(owner) | LeavingStage::Waiting(owner) => owner.end(),
                    LeavingStage::Wanted | LeavingStage::Ending => LeavingEnd::LeaveDrain,
                };
                let (stayed, entry) = stays(node, &refusal.to_string(), end, now);
                self.record(node, stayed, &[entry]).await
            }
        }
    }
}

/// Returns the node without the recorded reason for waiting, because the drain has made progress.
fn told_no_more(node: &Node) -> Node {
    let waits = node.failure.as_ref().is_some_and(|it| it.reason == Reason::DrainWaits);
    let failure = node.failure.clone().filter(|_| !waits);
    Node { failure, ..node.clone() }
}
