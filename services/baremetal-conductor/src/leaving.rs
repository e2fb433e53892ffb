//! The part of a turn for a node that waits for the drain of its compute host. `baremetal-core` decides what clusterd is asked.

use baremetal_core::{
    AfterDrain, DrainFate, DrainRequest, DrainSeen, DrainStage, DrainStep, Node, Reason, Verb,
    WorkUuid, drain_refused, drain_stuck, plan_leaving, request_power, request_verb,
};
use jiff::Timestamp;
use reconcile::Requeue;
use tracing::{info, warn};

use crate::context::TurnContext;
use crate::record::TurnError;

impl TurnContext {
    /// Asks clusterd the question of the current stage, and records the result. The stage was recorded before, so after a crash the next
    /// turn repeats the same question.
    pub(crate) async fn apply_drain_step(
        &self,
        node: &Node,
        leaving: &DrainRequest,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let seen = self.drain_seen(leaving).await;
        match plan_leaving(leaving, &seen) {
            DrainStep::Enter(stage) => {
                let entered = DrainRequest { stage, ..leaving.clone() };
                self.record(node, Node { leaving: Some(entered), ..node.clone() }, &[]).await
            }
            DrainStep::Over => {
                self.record(node, Node { leaving: None, ..without_waiting_reason(node) }, &[]).await
            }
            DrainStep::Proceed => self.proceed(node, leaving, now).await,
            DrainStep::Wait(why) => {
                let rest = Requeue::After(self.settings.timeouts.poll_every);
                let Some((told, entry)) =
                    why.as_deref().and_then(|why| drain_stuck(node, why, now))
                else {
                    return Ok(rest);
                };
                warn!("node {}: {}", node.label(), entry.event);
                self.record(node, told, &[entry]).await?;
                Ok(rest)
            }
            DrainStep::Refuse(why, end) => {
                warn!("the request to node {} is refused: {why}", node.label());
                let (stayed, entry) = drain_refused(node, &why, end, now);
                self.record(node, stayed, &[entry]).await
            }
        }
    }

    async fn drain_seen(&self, leaving: &DrainRequest) -> DrainSeen {
        // Without a configured clusterd no host is drained.
        let Some(clusters) = &self.settings.clusters else { return DrainSeen::NoHost };
        match leaving.stage {
            DrainStage::Wanted | DrainStage::Waiting(_) => clusters.show(&leaving.host).await,
            DrainStage::Asking(_) => {
                let asking = clusters.drain(&leaving.host, &leaving.forced);
                self.store.tripwire().around("clusterd: drain", asking).await
            }
            DrainStage::Ending => {
                let asking = clusters.undrain(&leaving.host);
                self.store.tripwire().around("clusterd: end of a drain", asking).await
            }
        }
    }

    /// Carries out the request that waited for the drain, unless something forbids it by now.
    async fn proceed(
        &self,
        node: &Node,
        leaving: &DrainRequest,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let host = &leaving.host;
        let free = Node { leaving: None, ..without_waiting_reason(node) };
        let begun = |verb| {
            let asked = request_verb(&free, verb, WorkUuid::new_v4(), now);
            asked.map(|(to, entry)| (to, vec![entry.by(leaving.asked_by.as_deref())]))
        };
        let begun = match leaving.then {
            AfterDrain::Maintenance => Ok((free, Vec::new())),
            AfterDrain::Undeploy => begun(Verb::Undeploy),
            AfterDrain::Rebuild => begun(Verb::Rebuild),
            AfterDrain::Power { change, timeout } => {
                request_power(&free, change, now + timeout).map(|to| (to, Vec::new()))
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
                    DrainStage::Asking(owner) | DrainStage::Waiting(owner) => owner.end(),
                    DrainStage::Wanted | DrainStage::Ending => DrainFate::LeaveDrain,
                };
                let (stayed, entry) = drain_refused(node, &refusal.to_string(), end, now);
                self.record(node, stayed, &[entry]).await
            }
        }
    }
}

/// Returns the node without the recorded reason for waiting, because the drain has made progress.
fn without_waiting_reason(node: &Node) -> Node {
    let waits = node.failure.as_ref().is_some_and(|it| it.reason == Reason::DrainWaits);
    let failure = node.failure.clone().filter(|_| !waits);
    Node { failure, ..node.clone() }
}
