//! The number of nodes in each state.

use serde::Deserialize;

/// The number of nodes in each provision state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NodeCounts {
    pub total: u64,
    pub states: Vec<NodesInState>,
}

/// The number of nodes in a provision state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NodesInState {
    pub provision_state: String,
    pub count: u64,
}
