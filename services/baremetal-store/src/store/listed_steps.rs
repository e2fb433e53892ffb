//! The steps that agents listed.

use baremetal_core::{ListedSteps, NodeUuid, StepKind};
use database::WriteKind::OneStatement;
use database::{Result, reading, writing};

use crate::Store;
use crate::table::listed_steps;

impl Store {
    /// Returns the steps of this kind that the agent of `node` listed last, or `None` if it has listed none.
    pub async fn find_listed_steps(
        &self,
        node: NodeUuid,
        kind: StepKind,
    ) -> Result<Option<ListedSteps>> {
        reading!(self.database, |c| listed_steps::find(c, node, kind).await)
    }

    /// Records the steps that the agent of `node` has listed, in place of the earlier ones of their kind.
    pub async fn keep_listed_steps(&self, node: NodeUuid, listed: &ListedSteps) -> Result<()> {
        let listed = listed.clone();
        writing!(self.database, OneStatement, |c| listed_steps::put(c, node, &listed).await)
    }
}
