//! The table `vm_events`.

use cluster_core::{EventUuid, Severity, VmEvent, VmUuid};
use database::table::{PagePart, PageRows};
use database::{Connection, Result, Row, StoreError, values};
use newtype_uuid::GenericUuid;

use super::event_part::{EventQueries, list_part};
use super::{of_vm, refused};

const TABLE: &str = "vm_events";

/// How many events of each VM are kept.
const KEPT: i64 = 1000;

pub(crate) async fn append(
    connection: &mut Connection,
    vm: VmUuid,
    events: &[VmEvent],
) -> Result<()> {
    const INSERT: &str = "INSERT INTO vm_events (id, vm, at, severity, reason, message) VALUES ($1, $2, $3, $4, $5, $6)";
    const FORGET: &str = "DELETE FROM vm_events WHERE vm = $1 AND seq <= \
         (SELECT seq FROM vm_events WHERE vm = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    if events.is_empty() {
        return Ok(());
    }
    // Numbers must become visible in their order: a reader that continues after a number must not miss a lower one that is committed later.
    let (turn, _) = vm.into_untyped_uuid().as_u64_pair();
    connection.lock_key(turn.cast_signed()).await?;
    for event in events {
        let id = event.id.unwrap_or_else(EventUuid::new_v4);
        let (severity, reason) = (event.severity.as_str(), event.reason.as_str());
        let values = values![id, vm, event.at, severity, reason, event.message.as_str()];
        let written = connection.execute(INSERT, values).await;
        written.map_err(|error| refused(error, reason, &id, of_vm(vm)))?;
    }
    connection.execute(FORGET, values![vm, KEPT]).await?;
    Ok(())
}

/// Returns a part of the events of `vm` after `marker`, oldest first. A part continues after the number of an event.
pub(crate) async fn list(
    connection: &mut Connection,
    vm: VmUuid,
    limit: u32,
    marker: Option<EventUuid>,
    part: &PagePart<i64>,
) -> Result<PageRows<VmEvent, i64>> {
    const MARKER: &str = "SELECT seq FROM vm_events WHERE id = $1";
    const LIST: &str = "SELECT id, vm, at, severity, reason, message, seq FROM vm_events \
         WHERE vm = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let queries = EventQueries { marker: MARKER, list: LIST };
    list_part(connection, queries, vm.into_untyped_uuid(), (limit, marker), part, read).await
}

fn read(row: &Row) -> Result<VmEvent> {
    let severity = Severity::find(row.text(3)?).ok_or_else(|| {
        StoreError::corrupt(TABLE, row.text(0).unwrap_or_default(), "unknown severity")
    })?;
    Ok(VmEvent {
        id: Some(row.parse(TABLE, 0)?),
        vm: row.parse(TABLE, 1)?,
        at: row.time(TABLE, 2)?,
        severity,
        reason: row.text(4)?.to_owned(),
        message: row.text(5)?.to_owned(),
    })
}
