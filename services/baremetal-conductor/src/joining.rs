//! The part of a turn for a machine that joins or leaves an OpenStack.

use baremetal_core::{
    CloudSeen, JoinAction, JoinRules, Node, NodeUpdate, Problem, after_cloud_call, plan_join,
};
use reconcile::{Decided, Turn};
use tracing::{debug, info};

use crate::context::TurnContext;
use crate::record::TurnError;

/// The part of a turn for a node that joins or leaves the cloud.
pub(crate) struct JoinTurn<'a>(pub(crate) &'a TurnContext);

impl JoinTurn<'_> {
    fn rules(&self) -> JoinRules {
        let poll_every = self.0.settings.timeouts.poll_every;
        JoinRules { watching_since: self.0.watch.since(), poll_every }
    }
}

impl Turn for JoinTurn<'_> {
    type Record = Node;
    type Seen = CloudSeen;
    type Change = NodeUpdate;
    type Action = JoinAction;
    /// Why the cloud did not do as asked.
    type Outcome = Option<Problem>;
    type Error = TurnError;

    async fn observe(&self, node: &Node) -> Result<CloudSeen, TurnError> {
        Ok(self.0.look_at_cloud(node).await)
    }

    fn decide(&self, node: &Node, seen: &CloudSeen) -> Decided<Self> {
        Ok(plan_join(node, seen, &self.rules(), self.0.now()))
    }

    async fn write(&self, node: Node, change: NodeUpdate) -> Result<Node, TurnError> {
        self.0.write(&node, change).await
    }

    async fn perform(&self, node: &Node, action: JoinAction) -> Result<Option<Problem>, TurnError> {
        let Some(host) = &node.hypervisor else { return Ok(None) };
        info!("asking the cloud for host {}: {action:?}", host.host);
        let asking = self.0.ask_cloud(host, &action);
        let problem = self.0.membership.fence().permit(asking).await?.err();
        if let Some(problem) = &problem {
            debug!(problem = problem.cause, "the call to the cloud failed");
        }
        Ok(problem)
    }

    fn conclude(&self, node: &Node, problems: Vec<Option<Problem>>) -> Decided<Self> {
        let problem = problems.into_iter().flatten().next();
        Ok(after_cloud_call(node, problem.as_ref(), &self.rules(), self.0.now()).without_actions())
    }
}
