//! A step that a node runs on its child nodes, and how far the step is.

use serde::{Deserialize, Serialize};

use crate::{NodeUuid, Step};

/// A step in progress on child nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStep {
    pub step: Step,
    /// The child nodes on which the step began. They are recorded together with the requests to them, so an interruption repeats none.
    pub asked: Option<Vec<NodeUuid>>,
}
