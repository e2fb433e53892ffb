//! A node of an Ironic with everything that belongs to it, as Ironic's API shows them.

use serde_json::Value;

use crate::ironic::Object;

/// A node with everything that belongs to it.
#[derive(Clone, Debug, Default)]
pub(super) struct IronicNode {
    pub(super) node: Object,
    pub(super) portgroups: Vec<Object>,
    pub(super) ports: Vec<Object>,
    pub(super) connectors: Vec<Object>,
    pub(super) targets: Vec<Object>,
    pub(super) allocation: Option<Object>,
    /// The facts that the last inspection found.
    pub(super) inventory: Option<Value>,
    /// The entries of the node's history, the oldest one first.
    pub(super) history: Vec<Object>,
}
