//! The table `history`: the latest entries of each node's history.

use baremetal_core::{HistoryEntry, HistoryUuid, NodeUuid, Severity};
use database::table::{PagePart, PageRows, cut, violated_unique_column};
use database::{Connection, Result, Row, StoreError, values};
use newtype_uuid::GenericUuid;

const TABLE: &str = "history";

/// The number of entries kept for each node.
pub(crate) const KEPT: i64 = 300;

/// Adds entries to the history of `node`, which has to exist, and drops the oldest ones beyond the limit. An entry without an id gets one.
pub(crate) async fn append(
    connection: &mut Connection,
    node: NodeUuid,
    entries: &[HistoryEntry],
) -> Result<()> {
    const INSERT: &str = "INSERT INTO history \
         (id, node, at, severity, state_from, state_to, event, user_id, project, target, seconds) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const TRIM: &str = "DELETE FROM history WHERE node = $1 AND seq <= \
         (SELECT seq FROM history WHERE node = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    if entries.is_empty() {
        return Ok(());
    }
    for entry in entries {
        let id = entry.id.unwrap_or_else(HistoryUuid::new_v4);
        let values = values![
            id,
            node,
            entry.at,
            entry.severity.as_str(),
            entry.from.as_str(),
            entry.to.as_str(),
            entry.event.as_str(),
            entry.user.as_deref(),
            entry.project.as_deref(),
            entry.target.as_deref(),
            entry.seconds,
        ];
        let written = connection.execute(INSERT, values).await;
        written.map_err(|error| match violated_unique_column(&error) {
            Some(_) => StoreError::Duplicate { field: "history", value: id.to_string() },
            None => error.into(),
        })?;
    }
    connection.execute(TRIM, values![node, KEPT]).await?;
    Ok(())
}

/// Returns a part of the history of `node` after `marker`, oldest entry first. A part continues after the number of an entry.
pub(crate) async fn list(
    connection: &mut Connection,
    node: NodeUuid,
    limit: u32,
    marker: Option<HistoryUuid>,
    part: &PagePart<i64>,
) -> Result<PageRows<HistoryEntry, i64>> {
    const LIST: &str = "SELECT id, node, at, severity, state_from, state_to, event, user_id, project, target, seconds, seq \
         FROM history WHERE node = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let after = match part.after {
        Some(after) => after,
        None => number_of(connection, node, marker).await?,
    };
    let mut rows = connection.rows(LIST, values![node, after, limit]).await?;
    let is_full = cut(&mut rows, limit, part.bytes, 6)?;
    let last = rows.last().filter(|_| is_full).map(|row| row.int(11)).transpose()?;
    let found = rows.iter().map(read).collect::<Result<_>>()?;
    Ok(PageRows { found, more: last })
}

/// The number of the entry `marker`; without a marker, a number below all entries.
async fn number_of(
    connection: &mut Connection,
    node: NodeUuid,
    marker: Option<HistoryUuid>,
) -> Result<i64> {
    const MARKER: &str = "SELECT seq FROM history WHERE node = $1 AND id = $2";
    let Some(marker) = marker else { return Ok(i64::MIN) };
    let found = connection.row(MARKER, values![node, marker]).await?;
    Ok(found.ok_or(StoreError::NoMarker(marker.into_untyped_uuid()))?.int(0)?)
}

pub(crate) async fn find(
    connection: &mut Connection,
    node: NodeUuid,
    entry: HistoryUuid,
) -> Result<Option<HistoryEntry>> {
    const FIND: &str = "SELECT id, node, at, severity, state_from, state_to, event, user_id, project, target, seconds \
         FROM history WHERE node = $1 AND id = $2";
    connection.row(FIND, values![node, entry]).await?.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<HistoryEntry> {
    let word = row.text(3)?;
    let severity =
        Severity::find(word).ok_or_else(|| StoreError::corrupt(TABLE, word, "unknown severity"))?;
    Ok(HistoryEntry {
        id: Some(row.parse(TABLE, 0)?),
        node: row.parse(TABLE, 1)?,
        at: row.time(TABLE, 2)?,
        severity,
        from: row.text(4)?.to_owned(),
        to: row.text(5)?.to_owned(),
        event: row.text(6)?.to_owned(),
        user: row.optional_text(7)?.map(str::to_owned),
        project: row.optional_text(8)?.map(str::to_owned),
        target: row.optional_text(9)?.map(str::to_owned),
        seconds: row.optional_int(10)?,
    })
}
