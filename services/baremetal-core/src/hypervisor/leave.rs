//! A machine that was a compute host and was taken out of use: the cloud is to forget it.

use jiff::{SignedDuration, Timestamp};

use super::{CloudSeen, Hypervisor, JoinAction, JoinState, JoinStep};
use crate::{HistoryEntry, Node};

/// The longest until the cloud is asked again that did not do it. It is asked for ever: it refuses as long as it knows of servers there.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What comes next, by what was `seen` of the host's compute service.
pub(super) fn plan(seen: &CloudSeen, now: Timestamp) -> JoinStep {
    match seen {
        CloudSeen::Service(Some(service)) => {
            JoinStep::Act(JoinAction::Forget { service: service.id.clone() })
        }
        CloudSeen::Service(None) => JoinStep::Gone,
        CloudSeen::Trouble(_)
        | CloudSeen::Hypervisor(_)
        | CloudSeen::Provider(_)
        | CloudSeen::Aggregates(_) => {
            JoinStep::Wait { until: now.checked_add(ASK_AGAIN).unwrap_or(Timestamp::MAX) }
        }
    }
}

impl Hypervisor {
    /// Whether its machine is none any more, and the cloud is to forget it.
    pub fn is_leaving(&self) -> bool {
        self.state == JoinState::Leaving
    }

    /// The same, once its machine is off for good.
    pub(crate) fn leaving(&self, now: Timestamp) -> Self {
        self.at(JoinState::Leaving, now)
    }
}

impl Node {
    /// Whether the cloud is to forget the host that its machine was, and we are to look after that: not amid work.
    pub fn is_leaving(&self) -> bool {
        !self.provision_state.is_busy()
            && self.maintenance.is_none()
            && self.hypervisor.as_ref().is_some_and(Hypervisor::is_leaving)
    }

    /// The node once the cloud knows its host no more, and what its history says of that.
    pub fn left_the_cloud(&self, now: Timestamp) -> (Node, HistoryEntry) {
        let host = self.hypervisor.as_ref().map_or("", |host| &host.host);
        let told = format!("host {host} has left the cloud");
        let gone = Node { hypervisor: None, ..self.clone() };
        let entry = HistoryEntry::changed(self, &gone, told, now);
        (gone, entry)
    }
}
