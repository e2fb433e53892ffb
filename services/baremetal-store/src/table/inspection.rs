//! The table `inspections`: the result of each node's last inspection.

use crate::table::no_node;
use baremetal_core::{InspectionReport, NodeUuid};
use database::table::is_missing_owner;
use database::{Connection, Result, values};

const TABLE: &str = "inspections";

pub(crate) async fn find(
    connection: &mut Connection,
    node: NodeUuid,
) -> Result<Option<InspectionReport>> {
    const FIND: &str = "SELECT node, at, inventory, plugin_data FROM inspections WHERE node = $1";
    let Some(row) = connection.row(FIND, values![node]).await? else { return Ok(None) };
    Ok(Some(InspectionReport {
        node: row.parse(TABLE, 0)?,
        at: row.time(TABLE, 1)?,
        inventory: row.json(TABLE, 2)?,
        plugin_data: row.json(TABLE, 3)?,
    }))
}

/// Inserts or replaces the whole row.
pub(crate) async fn save(connection: &mut Connection, found: &InspectionReport) -> Result<()> {
    const SAVE: &str = "INSERT INTO inspections (node, at, inventory, plugin_data) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (node) DO UPDATE SET at = $2, inventory = $3, plugin_data = $4";
    let values =
        values![found.node, found.at, found.inventory.to_string(), found.plugin_data.to_string(),];
    match connection.execute(SAVE, values).await {
        Err(error) if is_missing_owner(&error) => Err(no_node(found.node)),
        written => Ok(written.map(drop)?),
    }
}
