//! The table `vms`. The sealed user-data of a VM is in its row until the server is built.

use cluster_core::{Ident, Page, Vm, VmSort, VmUuid};
use database::documents::{keep_unknown, known_part};
use database::table::{Listing, PagePart, PageRows, changed_one};
use database::{
    Column, Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, columns, program,
    values,
};
use newtype_uuid::GenericUuid;
use sealing::id_of;

use super::{deleted, refused};
use crate::{SealedUserData, VmScope};

const TABLE: &str = "vms";
const SELECT: &str = "SELECT id, version, document FROM vms";

pub(crate) async fn insert(
    connection: &mut Connection,
    vm: &Vm,
    sealed: Option<&str>,
) -> Result<()> {
    let mut columns = columns(vm)?;
    columns.extend(columns![sealed: sealed, sealed_by: sealed.and_then(id_of)]);
    let written = columns::insert(connection, TABLE, columns).await;
    written.map_err(|error| refuse(vm, error))
}

/// Writes a VM. The sealed user-data is deleted once the VM says that it is not kept.
pub(crate) async fn update(connection: &mut Connection, vm: &Vm) -> Result<Vm> {
    const SEALED: &str = "sealed = CASE WHEN ? = 1 THEN sealed ELSE NULL END, \
         sealed_by = CASE WHEN ? = 1 THEN sealed_by ELSE NULL END";
    let is_kept = vm.user_data.as_ref().is_some_and(|it| it.is_kept);
    let more = || (SEALED, database::Value::from(is_kept));
    let mut columns = columns(vm)?;
    let written = columns::update_with(connection, TABLE, columns.clone(), more()).await;
    let mut written = written.map_err(|error| refuse(vm, error))?;
    if written == 0 && keep_unknown(connection, TABLE, &mut columns, known_part::<Vm>).await? {
        let again = columns::update_with(connection, TABLE, columns, more()).await;
        written = again.map_err(|error| refuse(vm, error))?;
    }
    changed_one(written)?;
    Ok(Vm { version: vm.version + 1, ..vm.clone() })
}

/// Returns the stored VM, if its version is still the one that was read.
pub(crate) async fn before(connection: &mut Connection, vm: &Vm) -> Result<Vm> {
    const FIND: &str = "SELECT id, version, document FROM vms WHERE id = $1 AND version = $2";
    let row = connection.row(FIND, values![vm.id, vm.version]).await?;
    row.map_or(Err(StoreError::Stale), |row| read(&row))
}

/// Returns the sealed user-data, while it is kept.
pub(crate) async fn sealed(connection: &mut Connection, vm: VmUuid) -> Result<Option<String>> {
    let row = connection.row("SELECT sealed FROM vms WHERE id = $1", values![vm]).await?;
    row.map_or(Ok(None), |row| Ok(row.optional_text(0)?.map(str::to_owned)))
}

/// Returns the next `limit` user-data sealed with this key, in the order of the VMs' ids.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: &str,
    after: Option<VmUuid>,
    limit: u32,
) -> Result<Vec<SealedUserData>> {
    const FIRST: &str = "SELECT id, sealed FROM vms WHERE sealed_by = $1 ORDER BY id LIMIT $2";
    const NEXT: &str =
        "SELECT id, sealed FROM vms WHERE sealed_by = $1 AND id > $3 ORDER BY id LIMIT $2";
    let rows = match after {
        None => connection.rows(FIRST, values![key, limit]).await?,
        Some(after) => connection.rows(NEXT, values![key, limit, after]).await?,
    };
    let read = |row: &Row| {
        Ok(SealedUserData { vm: row.parse(TABLE, 0)?, sealed: row.text(1)?.to_owned() })
    };
    rows.iter().map(read).collect()
}

/// Writes re-encrypted user-data, unless it changed since it was read. The version of the VM stays, because the VM did not change.
pub(crate) async fn reseal(
    connection: &mut Connection,
    old: &SealedUserData,
    sealed: &str,
) -> Result<bool> {
    const RESEAL: &str = "UPDATE vms SET sealed = $3, sealed_by = $4 WHERE id = $1 AND sealed = $2";
    let values = values![old.vm, old.sealed.as_str(), sealed, id_of(sealed)];
    Ok(connection.execute(RESEAL, values).await? == 1)
}

pub(crate) async fn delete(connection: &mut Connection, vm: &Vm) -> Result<()> {
    const DELETE: &str = "DELETE FROM vms WHERE id = $1 AND version = $2";
    deleted(connection.execute(DELETE, values![vm.id, vm.version]).await, "its ledger")
}

/// Returns the VMs with this id or name in `scope`.
pub(crate) async fn find(
    connection: &mut Connection,
    ident: &Ident,
    scope: &VmScope,
) -> Result<Vec<Vm>> {
    called(connection, SELECT, ident, scope).await?.iter().map(read).collect()
}

/// Returns a part of a page of the VMs in `scope`; only those of `person`, when one is given.
pub(crate) async fn list(
    connection: &mut Connection,
    (scope, person): (&VmScope, Option<&str>),
    page: &Page<VmSort>,
    part: &PagePart,
) -> Result<PageRows<Vm>> {
    let only = |query: &mut Query| query.and_if_set("person = ?", person);
    page_part(connection, (TABLE, SELECT), scope, only, (page, part), read).await
}

/// Returns the rows with this id or name in `scope`, of any table with the columns `project` and `person`.
pub(super) async fn called(
    connection: &mut Connection,
    select: &'static str,
    ident: &Ident,
    scope: &VmScope,
) -> Result<Vec<Row>> {
    let mut query = Query::new(select);
    match ident {
        Ident::Id(id) => query.and_value("id = ?", *id),
        Ident::Name(name) => query.and_value("name = ?", name.as_str()),
    }
    query.and_if_set("project = ?", scope.project());
    query.and_if_set("person = ?", scope.person());
    Ok(query.first_by_id(100).rows(connection).await?)
}

/// Returns a part of a page of the rows in `scope`, restricted by `only`. Column 2 is the document.
pub(super) async fn page_part<T>(
    connection: &mut Connection,
    (table, select): (&'static str, &'static str),
    scope: &VmScope,
    only: impl FnOnce(&mut Query),
    (page, part): (&Page<VmSort>, &PagePart),
    read: impl Fn(&Row) -> Result<T>,
) -> Result<PageRows<T>> {
    let key = key(page.sort);
    let seen = seen(scope);
    let seen = seen.as_ref().map(|(condition, own)| (*condition, own.as_str()));
    let listing = Listing { table, key: &key, seen, document: 2 };
    let after = listing.begin(connection, page.marker, Some(part)).await?;
    let mut query = Query::new(select);
    query.and_if_set("project = ?", scope.project());
    query.and_if_set("person = ?", scope.person());
    only(&mut query);
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, Some(part), read).await
}

/// Returns the SQL condition for rows that `scope` may see, with its value.
fn seen(scope: &VmScope) -> Option<(&'static str, String)> {
    match scope {
        VmScope::Person { project, user } => {
            Some(("project || '/' || person = ?", format!("{project}/{user}")))
        }
        VmScope::Project(project) => Some(("project = ?", project.clone())),
        VmScope::All => None,
    }
}

/// Returns the sort key of a page.
fn key(sort: VmSort) -> Key {
    match sort {
        VmSort::CreatedAt => Key { sql: "created_at", is_number: true, tie: Tie::Id },
        VmSort::Id => Key { sql: "id", is_number: false, tie: Tie::Id },
        VmSort::Name => Key { sql: "name", is_number: false, tie: Tie::Id },
    }
}

pub(crate) async fn is_there(connection: &mut Connection, vm: VmUuid) -> Result<bool> {
    let row = connection.row("SELECT id FROM vms WHERE id = $1", values![vm]).await?;
    Ok(row.is_some())
}

pub(crate) async fn some(connection: &mut Connection, ids: &[VmUuid]) -> Result<Vec<Vm>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = Query::new(SELECT);
    query.and_any("id", ids.iter().map(|&id| id.into()));
    query.rows(connection).await?.iter().map(read).collect()
}

/// Returns the number of VMs.
pub(crate) async fn count(connection: &mut Connection) -> Result<u64> {
    let row = connection.row("SELECT count(*) FROM vms", values![]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs())
}

pub(crate) async fn ids(connection: &mut Connection) -> Result<Vec<VmUuid>> {
    let rows = connection.rows("SELECT id FROM vms ORDER BY id", values![]).await?;
    rows.iter().map(|row| row.parse(TABLE, 0)).collect()
}

fn read(row: &Row) -> Result<Vm> {
    let vm: Vm = row.json(TABLE, 2)?;
    Ok(Vm { id: row.parse(TABLE, 0)?, version: row.int(1)?, ..vm })
}

fn columns(vm: &Vm) -> Result<Vec<Column>> {
    let document = serde_json::to_string(vm)
        .map_err(|error| StoreError::corrupt(TABLE, &vm.id.to_string(), error))?;
    Ok(columns![
        id: vm.id,
        version: vm.version,
        created_at: vm.created_at,
        project: vm.project.as_str(),
        person: vm.user.as_str(),
        name: vm.name.as_str(),
        document: document,
        written_by: program::NUMBER,
    ])
}

fn refuse(vm: &Vm, error: SqlError) -> StoreError {
    refused(error, vm.name.as_str(), &vm.id, ("VM", vm.id.into_untyped_uuid()))
}
