//! The table `events`.

use cluster_core::{ClusterUuid, Event, EventUuid, Severity};
use database::table::{PagePart, PageRows};
use database::{Connection, Result, Row, StoreError, values};
use newtype_uuid::GenericUuid;

use super::event_part::{EventQueries, list_part};
use super::{of_cluster, refused};

const TABLE: &str = "events";

/// How many events of each cluster are kept.
const KEPT: i64 = 1000;

pub(crate) async fn append(
    connection: &mut Connection,
    cluster: ClusterUuid,
    events: &[Event],
) -> Result<()> {
    const INSERT: &str = "INSERT INTO events (id, cluster, at, severity, reason, message) VALUES ($1, $2, $3, $4, $5, $6)";
    const FORGET: &str = "DELETE FROM events WHERE cluster = $1 AND seq <= \
         (SELECT seq FROM events WHERE cluster = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    if !events.is_empty() {
        // Numbers must become visible in their order: a reader that continues after a number must not miss a lower one that is committed
        // later.
        let (turn, _) = cluster.into_untyped_uuid().as_u64_pair();
        connection.lock_key(turn.cast_signed()).await?;
    }
    for event in events {
        let id = event.id.unwrap_or_else(EventUuid::new_v4);
        let (severity, reason) = (event.severity.as_str(), event.reason.as_str());
        let values = values![id, cluster, event.at, severity, reason, event.message.as_str()];
        let written = connection.execute(INSERT, values).await;
        written.map_err(|error| refused(error, reason, &id, of_cluster(cluster)))?;
    }
    if !events.is_empty() {
        connection.execute(FORGET, values![cluster, KEPT]).await?;
    }
    Ok(())
}

/// Returns a part of the events of `cluster` after `marker`, oldest first. A part continues after the number of an event.
pub(crate) async fn list(
    connection: &mut Connection,
    cluster: ClusterUuid,
    limit: u32,
    marker: Option<EventUuid>,
    part: &PagePart<i64>,
) -> Result<PageRows<Event, i64>> {
    const MARKER: &str = "SELECT seq FROM events WHERE id = $1";
    const LIST: &str = "SELECT id, cluster, at, severity, reason, message, seq FROM events \
         WHERE cluster = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let queries = EventQueries { marker: MARKER, list: LIST };
    list_part(connection, queries, cluster.into_untyped_uuid(), (limit, marker), part, read).await
}

/// Returns the events of `cluster` with numbers above `number`, each with its number; `None` when there is no such cluster.
pub(crate) async fn after(
    connection: &mut Connection,
    cluster: ClusterUuid,
    number: i64,
    limit: u32,
) -> Result<Option<Vec<(i64, Event)>>> {
    const AFTER: &str = "SELECT id, cluster, at, severity, reason, message, seq FROM events \
         WHERE cluster = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    const IS_THERE: &str = "SELECT id FROM clusters WHERE id = $1";
    let rows = connection.rows(AFTER, values![cluster, number, limit]).await?;
    if rows.is_empty() && connection.row(IS_THERE, values![cluster]).await?.is_none() {
        return Ok(None);
    }
    rows.iter().map(|row| Ok((row.int(6)?, read(row)?))).collect::<Result<_, _>>().map(Some)
}

fn read(row: &Row) -> Result<Event> {
    let severity = Severity::find(row.text(3)?).ok_or_else(|| {
        StoreError::corrupt(TABLE, row.text(0).unwrap_or_default(), "unknown severity")
    })?;
    Ok(Event {
        id: Some(row.parse(TABLE, 0)?),
        cluster: row.parse(TABLE, 1)?,
        at: row.time(TABLE, 2)?,
        severity,
        reason: row.text(4)?.to_owned(),
        message: row.text(5)?.to_owned(),
    })
}
