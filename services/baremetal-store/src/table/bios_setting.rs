//! The table `bios_settings`: the settings of each machine's firmware.

use baremetal_core::{BiosSetting, NodeUuid};
use database::table::is_missing_owner;
use database::{Connection, Result, StoreError, values};

use crate::table::no_node;

const TABLE: &str = "bios_settings";

/// Returns all settings of `node`, sorted by name.
pub(crate) async fn list(connection: &mut Connection, node: NodeUuid) -> Result<Vec<BiosSetting>> {
    const LIST: &str = "SELECT document FROM bios_settings WHERE node = $1 ORDER BY name";
    let rows = connection.rows(LIST, values![node]).await?;
    rows.iter().map(|row| row.json(TABLE, 0)).collect()
}

pub(crate) async fn find(
    connection: &mut Connection,
    node: NodeUuid,
    name: &str,
) -> Result<Option<BiosSetting>> {
    const FIND: &str = "SELECT document FROM bios_settings WHERE node = $1 AND name = $2";
    let row = connection.row(FIND, values![node, name]).await?;
    row.map(|row| row.json(TABLE, 0)).transpose()
}

pub(crate) async fn replace(
    connection: &mut Connection,
    node: NodeUuid,
    settings: &[BiosSetting],
) -> Result<()> {
    const CLEAR: &str = "DELETE FROM bios_settings WHERE node = $1";
    const INSERT: &str = "INSERT INTO bios_settings (node, name, document) VALUES ($1, $2, $3)";
    connection.execute(CLEAR, values![node]).await?;
    for setting in settings {
        let document = serde_json::to_string(setting)
            .map_err(|why| StoreError::corrupt(TABLE, &setting.name, why))?;
        match connection.execute(INSERT, values![node, setting.name.as_str(), document]).await {
            Err(error) if is_missing_owner(&error) => return Err(no_node(node)),
            written => written.map(drop)?,
        }
    }
    Ok(())
}
