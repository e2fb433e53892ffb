//! The table `boots`.

use crate::table::no_node;
use baremetal_core::{Boot, NodeUuid};
use database::table::is_missing_owner;
use database::{Connection, Result, values};
use jiff::Timestamp;

const TABLE: &str = "boots";

pub(crate) async fn find(connection: &mut Connection, node: NodeUuid) -> Result<Option<Boot>> {
    const FIND: &str = "SELECT node, work, nonce, script_at, inventory_at, callback_url, certificate, agent_version, \
         seen_at FROM boots WHERE node = $1";
    let Some(row) = connection.row(FIND, values![node]).await? else { return Ok(None) };
    Ok(Some(Boot {
        node: row.parse(TABLE, 0)?,
        work: row.parse(TABLE, 1)?,
        nonce: row.text(2)?.to_owned(),
        script_at: row.optional_time(TABLE, 3)?,
        inventory_at: row.optional_time(TABLE, 4)?,
        callback_url: row.optional_text(5)?.map(str::to_owned),
        certificate: row.optional_text(6)?.map(str::to_owned),
        agent_version: row.optional_text(7)?.map(str::to_owned),
        seen_at: row.optional_time(TABLE, 8)?,
    }))
}

/// Inserts or replaces the whole row.
pub(crate) async fn save(connection: &mut Connection, boot: &Boot) -> Result<()> {
    const SAVE: &str = "INSERT INTO boots (node, work, nonce, script_at, inventory_at, callback_url, certificate, \
         agent_version, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (node) DO UPDATE SET work = $2, nonce = $3, script_at = $4, inventory_at = $5, \
         callback_url = $6, certificate = $7, agent_version = $8, seen_at = $9";
    let values = values![
        boot.node,
        boot.work,
        boot.nonce.as_str(),
        boot.script_at,
        boot.inventory_at,
        boot.callback_url.as_deref(),
        boot.certificate.as_deref(),
        boot.agent_version.as_deref(),
        boot.seen_at,
    ];
    match connection.execute(SAVE, values).await {
        Err(error) if is_missing_owner(&error) => Err(no_node(boot.node)),
        written => Ok(written.map(drop)?),
    }
}

/// Writes what the machine of this boot has reported, and returns whether the boot is still the node's newest.
pub(crate) async fn report(connection: &mut Connection, boot: &Boot) -> Result<bool> {
    const REPORT: &str = "UPDATE boots SET inventory_at = $3, callback_url = $4, certificate = $5, agent_version = $6, \
         seen_at = $7 WHERE node = $1 AND nonce = $2";
    let values = values![
        boot.node,
        boot.nonce.as_str(),
        boot.inventory_at,
        boot.callback_url.as_deref(),
        boot.certificate.as_deref(),
        boot.agent_version.as_deref(),
        boot.seen_at,
    ];
    Ok(connection.execute(REPORT, values).await? > 0)
}

/// Records when the token of this boot was handed out, and returns whether it was not handed out before.
pub(crate) async fn claim(
    connection: &mut Connection,
    boot: &Boot,
    now: Timestamp,
) -> Result<bool> {
    const CLAIM: &str =
        "UPDATE boots SET script_at = $3 WHERE node = $1 AND nonce = $2 AND script_at IS NULL";
    let values = values![boot.node, boot.nonce.as_str(), now];
    Ok(connection.execute(CLAIM, values).await? > 0)
}
