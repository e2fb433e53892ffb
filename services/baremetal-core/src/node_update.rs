//! A change of a node that a turn has decided.

use decision::{Decision, Requeue};

use crate::{HistoryEntry, Node};

/// A change of a node's record, with the entries for its history that are written in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUpdate {
    pub node: Node,
    pub history: Vec<HistoryEntry>,
}

impl NodeUpdate {
    /// Returns the decision to write the node. The next turn is due immediately as long as anything is left to do.
    pub fn decided<A>(
        node: Node,
        history: impl IntoIterator<Item = HistoryEntry>,
    ) -> Decision<NodeUpdate, A> {
        let next_turn = if node.needs_turns() { Requeue::Now } else { Requeue::OnChange };
        Decision::write(NodeUpdate { node, history: history.into_iter().collect() }, next_turn)
    }
}

impl Node {
    /// Returns whether anything is left to do for the node, which includes waiting for the end of a lease.
    pub fn needs_turns(&self) -> bool {
        self.work.is_some()
            || self.power_request.is_some()
            || self.lending.is_some()
            || self.leaving.is_some()
            || self.looks_at_cloud()
    }
}
