//! Leaving an OpenStack: removing the compute host of a machine that was taken out of use.

use std::time::Duration;

use decision::Decision;
use jiff::Timestamp;

use super::action::JoinAction;
use super::seen::CloudSeen;
use super::turn::JoinTurn;
use crate::{HistoryEntry, Hypervisor, Node, NodeUpdate};

/// The interval of retries. The conductor retries without end, because the cloud refuses as long as it knows servers on the host.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Decides the next step for a leaving host, given an observation of its compute service.
pub(super) fn plan(turn: &JoinTurn<'_>, seen: &CloudSeen) -> Decision<NodeUpdate, JoinAction> {
    match seen {
        CloudSeen::Service(Some(service)) => {
            Decision::act(JoinAction::Forget { service: service.id.clone() })
        }
        CloudSeen::Service(None) => {
            let (gone, entry) = turn.node.left_the_cloud(turn.now);
            let reported = format!("node {}: {}", turn.node.label(), entry.event);
            NodeUpdate::decided(gone, [entry]).info(reported)
        }
        CloudSeen::Failed(_)
        | CloudSeen::Hypervisor(_)
        | CloudSeen::Provider(_)
        | CloudSeen::Aggregates(_) => ask_again(turn),
    }
}

/// Decides to ask the cloud again.
pub(super) fn ask_again<A>(turn: &JoinTurn<'_>) -> Decision<NodeUpdate, A> {
    Decision::rest(turn.cloud_pause(ASK_AGAIN))
}

impl Node {
    /// Returns whether the conductor has to remove the node's host from the cloud now. During other work the removal waits.
    pub fn is_leaving(&self) -> bool {
        !self.provision_state.is_busy()
            && self.maintenance.is_none()
            && self.hypervisor.as_ref().is_some_and(Hypervisor::is_leaving)
    }

    /// Returns the node after the cloud has removed its host, and the entry for its history.
    pub fn left_the_cloud(&self, now: Timestamp) -> (Node, HistoryEntry) {
        let host = self.hypervisor.as_ref().map_or("", |host| &host.host);
        let reported = format!("host {host} has left the cloud");
        let gone = Node { hypervisor: None, ..self.clone() };
        let entry = HistoryEntry::changed(self, &gone, reported, now);
        (gone, entry)
    }
}
