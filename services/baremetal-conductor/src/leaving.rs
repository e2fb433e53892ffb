//! The part of a turn for a node that waits for the drain of its compute host, and the calls to clusterd.

use baremetal_core::{
    ClusterdCall, DrainSeen, LeavingRules, Node, NodeUpdate, WorkUuid, after_leaving_call,
    plan_leaving,
};
use decision::{Decision, Requeue};
use reconcile::{Decided, Mutation, Turn};
use replicas::LeasePassed;

use crate::context::TurnContext;
use crate::record::TurnError;

/// The part of a turn for a node that waits for a drain.
pub(crate) struct LeavingTurn<'a>(pub(crate) &'a TurnContext);

impl Turn for LeavingTurn<'_> {
    type Record = Node;
    type Seen = ();
    type Change = NodeUpdate;
    type Action = ClusterdCall;
    type Outcome = DrainSeen;
    type Error = TurnError;

    async fn observe(&self, _: &Node) -> Result<(), TurnError> {
        Ok(())
    }

    fn decide(&self, node: &Node, (): &()) -> Decided<Self> {
        Ok(node.leaving.as_ref().map_or(Decision::rest(Requeue::OnChange), plan_leaving))
    }

    async fn write(&self, node: Node, update: NodeUpdate) -> Result<Node, TurnError> {
        self.0.write(&node, update).await
    }

    async fn perform(&self, _: &Node, call: ClusterdCall) -> Result<DrainSeen, TurnError> {
        Ok(self.0.ask_clusterd(call).await?)
    }

    fn conclude(&self, node: &Node, answers: Vec<DrainSeen>) -> Decided<Self> {
        let poll_every = self.0.settings.timeouts.poll_every;
        let rules = LeavingRules { poll_every, new_work: WorkUuid::new_v4() };
        let Some(seen) = answers.first() else { return Ok(Decision::rest(Requeue::OnChange)) };
        let is_early = Mutation::NoDrain.is_made() && matches!(seen, DrainSeen::Draining(_));
        let seen = if is_early { &DrainSeen::Drained } else { seen };
        Ok(after_leaving_call(node, seen, &rules, self.0.now()).without_actions())
    }
}

impl TurnContext {
    /// Makes a call to clusterd. Without a configured clusterd no host is drained.
    pub(crate) async fn ask_clusterd(&self, call: ClusterdCall) -> Result<DrainSeen, LeasePassed> {
        let Some(clusters) = &self.settings.clusters else { return Ok(DrainSeen::NoHost) };
        match call {
            ClusterdCall::Show { host } => Ok(clusters.show(&host).await),
            ClusterdCall::Drain { host, forced } => {
                let asking = clusters.drain(&host, &forced);
                self.effect("clusterd: drain", asking).await
            }
            ClusterdCall::Undrain { host } => {
                let asking = clusters.undrain(&host);
                self.effect("clusterd: end of a drain", asking).await
            }
        }
    }
}
