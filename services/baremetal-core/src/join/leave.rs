//! Leaving an OpenStack: removing the compute host of a machine that was taken out of use.

use jiff::{SignedDuration, Timestamp};

use super::seen::CloudSeen;
use super::step::{JoinAction, JoinStep};
use crate::{HistoryEntry, Hypervisor, Node};

/// The interval of retries. The conductor retries without end, because the cloud refuses as long as it knows servers on the host.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Returns the next step for a leaving host, given an observation of its compute service.
pub(super) fn plan(seen: &CloudSeen, now: Timestamp) -> JoinStep {
    match seen {
        CloudSeen::Service(Some(service)) => {
            JoinStep::Act(JoinAction::Forget { service: service.id.clone() })
        }
        CloudSeen::Service(None) => JoinStep::Gone,
        CloudSeen::Failed(_)
        | CloudSeen::Hypervisor(_)
        | CloudSeen::Provider(_)
        | CloudSeen::Aggregates(_) => {
            JoinStep::Wait { until: now.checked_add(ASK_AGAIN).unwrap_or(Timestamp::MAX) }
        }
    }
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
        let told = format!("host {host} has left the cloud");
        let gone = Node { hypervisor: None, ..self.clone() };
        let entry = HistoryEntry::changed(self, &gone, told, now);
        (gone, entry)
    }
}
