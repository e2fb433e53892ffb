//! Parts of lists of events, which clusters and VMs keep in tables of the same columns.

use cluster_core::EventUuid;
use database::table::{PagePart, PageRows, cut};
use database::{Connection, Result, Row, values};
use uuid::Uuid;

/// The statements that read the events of a table.
pub(super) struct EventQueries {
    /// Selects the number of the event with an id.
    pub marker: &'static str,
    /// Selects the events of an owner after a number; the message is column 5, the number of the event column 6.
    pub list: &'static str,
}

/// Returns a part of the events of `owner` after `marker`, oldest first. A part continues after the number of an event.
pub(super) async fn list_part<E>(
    connection: &mut Connection,
    queries: EventQueries,
    owner: Uuid,
    (limit, marker): (u32, Option<EventUuid>),
    part: &PagePart<i64>,
    read: fn(&Row) -> Result<E>,
) -> Result<PageRows<E, i64>> {
    let after = match (part.after, marker) {
        (Some(after), _) => after,
        (None, None) => i64::MIN,
        (None, Some(marker)) => match connection.row(queries.marker, values![marker]).await? {
            Some(row) => row.int(0)?,
            None => return Ok(PageRows { found: Vec::new(), more: None }),
        },
    };
    let mut rows = connection.rows(queries.list, values![owner, after, limit]).await?;
    let is_full = cut(&mut rows, limit, part.bytes, 5)?;
    let more = rows.last().filter(|_| is_full).map(|row| row.int(6)).transpose()?;
    let found = rows.iter().map(read).collect::<Result<_>>()?;
    Ok(PageRows { found, more })
}
