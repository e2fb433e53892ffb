//! The table `snapshots`: snapshots of VMs, which may be deleted already.

use cluster_core::{Ident, Page, Snapshot, SnapshotUuid, VmSort, VmUuid};
use database::documents::{self, known_part};
use database::table::{PagePart, PageRows, changed_one};
use database::{
    Column, Connection, Query, Result, Row, SqlError, StoreError, columns, program, values,
};
use newtype_uuid::GenericUuid;

use super::vm::{called, page_part};
use super::{deleted, refused};
use crate::VmScope;

const TABLE: &str = "snapshots";
const SELECT: &str = "SELECT id, version, document FROM snapshots";

pub(crate) async fn insert(connection: &mut Connection, snapshot: &Snapshot) -> Result<()> {
    let written = columns::insert(connection, TABLE, columns(snapshot)?).await;
    written.map_err(|error| refuse(snapshot, error))
}

pub(crate) async fn update(connection: &mut Connection, snapshot: &Snapshot) -> Result<Snapshot> {
    let (columns, refused) = (|| columns(snapshot), |error| refuse(snapshot, error));
    let known = known_part::<Snapshot>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)?;
    Ok(Snapshot { version: snapshot.version + 1, ..snapshot.clone() })
}

pub(crate) async fn delete(connection: &mut Connection, snapshot: &Snapshot) -> Result<()> {
    const DELETE: &str = "DELETE FROM snapshots WHERE id = $1 AND version = $2";
    deleted(connection.execute(DELETE, values![snapshot.id, snapshot.version]).await, "a VM")
}

/// Returns the snapshots with this id or name in `scope`.
pub(crate) async fn find(
    connection: &mut Connection,
    ident: &Ident,
    scope: &VmScope,
) -> Result<Vec<Snapshot>> {
    called(connection, SELECT, ident, scope).await?.iter().map(read).collect()
}

/// Returns a part of a page of the snapshots in `scope`; only those of one VM, when it is given.
pub(crate) async fn list(
    connection: &mut Connection,
    (scope, vm): (&VmScope, Option<VmUuid>),
    page: &Page<VmSort>,
    part: &PagePart,
) -> Result<PageRows<Snapshot>> {
    let only = |query: &mut Query| query.and_if_set("vm = ?", vm);
    page_part(connection, (TABLE, SELECT), scope, only, (page, part), read).await
}

/// Returns the ids of the snapshots of a VM.
pub(crate) async fn of(connection: &mut Connection, vm: VmUuid) -> Result<Vec<SnapshotUuid>> {
    const OF: &str = "SELECT id FROM snapshots WHERE vm = $1 ORDER BY id";
    let rows = connection.rows(OF, values![vm]).await?;
    rows.iter().map(|row| row.parse(TABLE, 0)).collect()
}

pub(crate) async fn ids(connection: &mut Connection) -> Result<Vec<SnapshotUuid>> {
    let rows = connection.rows("SELECT id FROM snapshots ORDER BY id", values![]).await?;
    rows.iter().map(|row| row.parse(TABLE, 0)).collect()
}

fn read(row: &Row) -> Result<Snapshot> {
    let snapshot: Snapshot = row.json(TABLE, 2)?;
    Ok(Snapshot { id: row.parse(TABLE, 0)?, version: row.int(1)?, ..snapshot })
}

fn columns(snapshot: &Snapshot) -> Result<Vec<Column>> {
    let document = serde_json::to_string(snapshot)
        .map_err(|error| StoreError::corrupt(TABLE, &snapshot.id.to_string(), error))?;
    Ok(columns![
        id: snapshot.id,
        version: snapshot.version,
        created_at: snapshot.created_at,
        project: snapshot.project.as_str(),
        person: snapshot.user.as_str(),
        name: snapshot.name.as_str(),
        vm: snapshot.vm,
        document: document,
        written_by: program::NUMBER,
    ])
}

fn refuse(snapshot: &Snapshot, error: SqlError) -> StoreError {
    let owner = ("snapshot", snapshot.id.into_untyped_uuid());
    refused(error, snapshot.name.as_str(), &snapshot.id, owner)
}
