//! The table `listed_steps`: the steps that each node's agent listed last.

use baremetal_core::{ListedSteps, NodeUuid, StepKind};
use database::table::is_missing_owner;
use database::{Connection, Result, StoreError, values};

use crate::table::no_node;

const TABLE: &str = "listed_steps";

/// Returns the steps of this kind that the agent of `node` listed last.
pub(crate) async fn find(
    connection: &mut Connection,
    node: NodeUuid,
    kind: StepKind,
) -> Result<Option<ListedSteps>> {
    const FIND: &str = "SELECT document FROM listed_steps WHERE node = $1 AND kind = $2";
    let row = connection.row(FIND, values![node, kind.as_str()]).await?;
    row.map(|row| row.json(TABLE, 0)).transpose()
}

/// Inserts the list, or replaces the earlier list of its kind.
pub(crate) async fn put(
    connection: &mut Connection,
    node: NodeUuid,
    listed: &ListedSteps,
) -> Result<()> {
    const PUT: &str = "INSERT INTO listed_steps (node, kind, document) VALUES ($1, $2, $3) \
        ON CONFLICT (node, kind) DO UPDATE SET document = excluded.document";
    let kind = listed.kind.as_str();
    let document =
        serde_json::to_string(listed).map_err(|why| StoreError::corrupt(TABLE, kind, why))?;
    match connection.execute(PUT, values![node, kind, document]).await {
        Err(error) if is_missing_owner(&error) => Err(no_node(node)),
        written => Ok(written.map(drop)?),
    }
}
