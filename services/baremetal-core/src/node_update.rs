//! A change of a node that a turn has decided.

use decision::{Decision, Requeue};
use lease::LeaseStage;

use crate::{HistoryEntry, InspectionReport, ListedSteps, Node, PasswordRotation, Port};

/// A change of a node's record, with everything that is written in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUpdate {
    pub node: Node,
    pub history: Vec<HistoryEntry>,
    /// The stage of the lease's end that the change records, and about which people get notices.
    pub stage: Option<LeaseStage>,
    /// The obstacle that the history tells about. The conductor remembers it, so that the history tells about it once.
    pub obstacle: Option<Obstacle>,
    /// The steps that the agent has listed. The list is written first, and plans of later requests show it.
    pub listed: Option<ListedSteps>,
    /// The changes that inspection rules made besides those of the node.
    pub inspection: Option<InspectionChanges>,
    /// The child nodes on which a step begins, each with the entry for its history.
    pub children: Vec<(Node, HistoryEntry)>,
}

/// The changes of an inspection besides those of the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InspectionChanges {
    pub ports: Vec<Port>,
    /// The report, if its plugin data changed.
    pub report: Option<InspectionReport>,
}

impl InspectionChanges {
    /// Returns the changes; `None` if there are none.
    pub fn some(self) -> Option<InspectionChanges> {
        (!self.ports.is_empty() || self.report.is_some()).then_some(self)
    }
}

/// An obstacle that the conductor meets in each turn, and the history tells about once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The lease has ended, but the node cannot be taken out, for this reason.
    LeaseEnd(String),
    /// The agent reports, but calls to it fail.
    AgentCalls,
}

impl NodeUpdate {
    /// Makes a change of the node and its history.
    pub fn new(node: Node, history: impl IntoIterator<Item = HistoryEntry>) -> NodeUpdate {
        let history = history.into_iter().collect();
        NodeUpdate {
            node,
            history,
            stage: None,
            obstacle: None,
            listed: None,
            inspection: None,
            children: Vec::new(),
        }
    }

    /// Returns the decision to write the node. The next turn is due immediately as long as anything is left to do.
    pub fn decided<A>(
        node: Node,
        history: impl IntoIterator<Item = HistoryEntry>,
    ) -> Decision<NodeUpdate, A> {
        let next_turn = if node.needs_turns() { Requeue::Now } else { Requeue::OnChange };
        Decision::write(NodeUpdate::new(node, history), next_turn)
    }
}

impl Node {
    /// Returns whether anything is left to do for the node, which includes waiting for the end of a lease.
    pub fn needs_turns(&self) -> bool {
        self.work.is_some()
            || self.power_request.is_some()
            || self.boot_setting_request.is_some()
            || self.password_rotation.as_ref().is_some_and(PasswordRotation::is_in_progress)
            || !self.network_changes.are_done()
            || self.lending.is_some()
            || self.leaving.is_some()
            || self.looks_at_cloud()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hardware::{BootSetting, MacAddress, PowerChange};
    use jiff::Timestamp;
    use serde_json::{Map, json};

    use super::*;
    use crate::drain_request::tests::{OURS, leaving, off};
    use crate::{
        BootSettingRequest, BootSettingStage, DrainStage, Driver, JoinState, NodeUuid, PortUuid,
        PowerRequest, RotationStage, State, Work, WorkUuid, hypervisor, lending,
    };

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Node), want: Requeue) {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        node.provision_state = State::Active;
        change(&mut node);
        let decision = NodeUpdate::decided::<Infallible>(node, []);
        assert_eq!(decision.next_turn, want);
    }

    #[test]
    fn another_turn_follows_at_once_while_anything_is_left_to_do() {
        let host = |state| Some(hypervisor::tests::host(state));
        let power = PowerRequest::new(PowerChange::On, T0);
        check(|node| node.work = Some(Work::new(WorkUuid::nil(), Vec::new(), T0)), Requeue::Now);
        check(|node| node.power_request = Some(power), Requeue::Now);
        let (wanted, stage) = (BootSetting::SecureBoot(true), BootSettingStage::Asking);
        let request = BootSettingRequest { wanted, stage, since: T0 };
        check(|node| node.boot_setting_request = Some(request), Requeue::Now);
        let rotation = |stage| Some(PasswordRotation { wanted: Map::new(), stage, since: T0 });
        check(|node| node.password_rotation = rotation(RotationStage::Made), Requeue::Now);
        check(|node| node.password_rotation = rotation(RotationStage::Unknown), Requeue::OnChange);
        check(|node| node.network_changes.binds = true, Requeue::Now);
        check(|node| node.lending = lending::tests::lent(State::Active).lending, Requeue::Now);
        check(|node| node.leaving = Some(leaving(off(), DrainStage::Waiting(OURS))), Requeue::Now);
        check(|node| node.hypervisor = host(JoinState::AwaitingService), Requeue::Now);
        check(|node| node.hypervisor = host(JoinState::Leaving), Requeue::Now);
        check(|node| node.hypervisor = host(JoinState::Joined), Requeue::OnChange);
        check(|_| {}, Requeue::OnChange);
    }

    #[test]
    fn an_inspection_without_changes_writes_nothing_more() {
        assert_eq!(InspectionChanges::default().some(), None);
        let mac = MacAddress::new([2; 6]);
        let ports = vec![Port::new(PortUuid::nil(), NodeUuid::nil(), mac, T0)];
        let changes = InspectionChanges { ports, report: None };
        assert_eq!(changes.clone().some(), Some(changes));
        let (node, at) = (NodeUuid::nil(), T0);
        let report = InspectionReport { node, at, inventory: json!({}), plugin_data: json!({}) };
        let changes = InspectionChanges { ports: Vec::new(), report: Some(report) };
        assert_eq!(changes.clone().some(), Some(changes));
    }
}
