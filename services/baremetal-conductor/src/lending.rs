//! The part of a turn for a node with a lease.

use baremetal_core::{
    ClusterdCall, DrainSeen, LeaseRules, Node, NodeUpdate, WorkUuid, after_lease_call,
    compute_host, plan_lending,
};
use decision::{Decision, Requeue};
use jiff::Timestamp;
use notices::{Letter, Notice, NoticeSubject};
use reconcile::{Decided, Turn};
use uuid::Uuid;

use crate::context::TurnContext;
use crate::record::TurnError;

/// The part of a turn for a node with a lease.
pub(crate) struct LeaseTurn<'a>(pub(crate) &'a TurnContext);

impl LeaseTurn<'_> {
    fn rules<'n>(&'n self, node: &'n Node) -> LeaseRules<'n> {
        let settings = &self.0.settings;
        LeaseRules {
            schedule: &settings.lending.schedule,
            power_timeout: settings.timeouts.power,
            host: settings.clusters.as_ref().and_then(|_| compute_host(node)),
            new_work: WorkUuid::new_v4(),
            recorded_obstacle: self.0.sightings.obstacle(node.id),
        }
    }
}

impl Turn for LeaseTurn<'_> {
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
        Ok(plan_lending(node, &self.rules(node), self.0.now()))
    }

    async fn write(&self, node: Node, update: NodeUpdate) -> Result<Node, TurnError> {
        self.0.write(&node, update).await
    }

    async fn perform(&self, _: &Node, call: ClusterdCall) -> Result<DrainSeen, TurnError> {
        Ok(Box::pin(self.0.ask_clusterd(call)).await?)
    }

    fn conclude(&self, node: &Node, answers: Vec<DrainSeen>) -> Decided<Self> {
        let Some(seen) = answers.first() else { return Ok(Decision::rest(Requeue::OnChange)) };
        Ok(after_lease_call(node, seen, &self.rules(node), self.0.now()).without_actions())
    }
}

impl TurnContext {
    /// Returns the notices about a stage of the lease's end. `entry` is the entry of the node's history about the stage.
    pub(crate) fn stage_letters(
        &self,
        node: &Node,
        stage: lease::LeaseStage,
        entry: &str,
        now: Timestamp,
    ) -> Vec<Letter> {
        let contact = node.lending.as_ref().and_then(|lending| lending.notify.as_ref());
        self.settings.lending.addressees.letters(&notice(node, stage, entry, now), contact)
    }
}

/// Returns the notice about a stage for people outside of the API.
fn notice(node: &Node, step: lease::LeaseStage, entry: &str, now: Timestamp) -> Notice {
    let (event, happens_at) = match step {
        lease::LeaseStage::Warn { ends_at } => ("lease.ends", Some(ends_at)),
        lease::LeaseStage::SwitchOff { deleted_at } => ("lease.ended", Some(deleted_at)),
        lease::LeaseStage::Snapshot => ("lease.copy_kept", None),
        lease::LeaseStage::WarnOfDeletion { deleted_at } => {
            ("lease.deletion_near", Some(deleted_at))
        }
        lease::LeaseStage::Delete => ("lease.deleted", None),
    };
    let until = node.lending.as_ref().map(|lending| lending.lease.until);
    let details = [("happens_at", happens_at), ("lease_until", until)];
    let details =
        details.into_iter().filter_map(|(key, at)| Some((key.to_owned(), at?.to_string().into())));
    let label = node.label();
    Notice {
        id: Uuid::new_v4(),
        at: now,
        event: event.to_owned(),
        subject: format!("Node {label}: {entry}"),
        text: format!(
            "Node {label} ({}): {entry}.\n\nTo extend the lease, use `bedplate node extend`; to undo its end, `bedplate node undo`; or PUT /bedplate/v1/nodes/ID/lease.",
            node.id
        ),
        project_id: node.lessee.clone(),
        about: NoticeSubject { kind: "node".to_owned(), id: node.id.to_string(), name: label },
        details: details.collect(),
    }
}
