//! The table `resources`: one row for each resource that is stored as one document.

use baremetal_core::{Chassis, Content, Node, Page, Stored, StoredFilter, StoredSort};
use database::table::{
    Listing, PagePart, PageRows, changed_one, is_missing_owner, violated_unique_column,
};
use database::{Column, Connection, Key, Query, Row, SqlError, StoreError, columns, values};
use uuid::Uuid;

use crate::table::no_node;

const TABLE: &str = "resources";

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, created_at, updated_at, document FROM resources";

/// The index of the document in `SELECT`.
const DOCUMENT: usize = 4;

pub(crate) async fn insert<C: Content>(
    connection: &mut Connection,
    it: &Stored<C>,
) -> Result<(), StoreError> {
    let written = columns::insert(connection, TABLE, columns(it)?).await;
    written.map_err(|error| refused(it, error))
}

pub(crate) async fn update<C: Content>(
    connection: &mut Connection,
    it: &Stored<C>,
) -> Result<Stored<C>, StoreError> {
    let written = columns::update(connection, TABLE, columns(it)?).await;
    changed_one(written.map_err(|error| refused(it, error))?)?;
    Ok(Stored { version: it.version + 1, ..it.clone() })
}

pub(crate) async fn delete(
    connection: &mut Connection,
    id: Uuid,
    version: i64,
) -> Result<(), StoreError> {
    const DELETE: &str = "DELETE FROM resources WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![id, version]).await?)
}

pub(crate) async fn find<C: Content>(
    connection: &mut Connection,
    id: Uuid,
) -> Result<Option<Stored<C>>, StoreError> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_value("id = ?", id);
    let (sql, values) = query.into_parts();
    connection.row(sql, values).await?.map(|row| read(&row)).transpose()
}

pub(crate) async fn find_by_name<C: Content>(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<Stored<C>>, StoreError> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_value("name = ?", name.to_owned());
    let (sql, values) = query.into_parts();
    connection.row(sql, values).await?.map(|row| read(&row)).transpose()
}

/// Returns one page of the resources that match `filter`, or a part of it.
pub(crate) async fn list<C: Content>(
    connection: &mut Connection,
    filter: &StoredFilter,
    page: &Page<StoredSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Stored<C>>, StoreError> {
    let key = match page.sort {
        StoredSort::CreatedAt => Key { sql: "created_at", is_number: true },
        StoredSort::Id => Key { sql: "id", is_number: false },
        StoredSort::Name => Key { sql: "coalesce(name, '')", is_number: false },
        StoredSort::UpdatedAt => {
            Key { sql: "coalesce(updated_at, -400000000000000000)", is_number: true }
        }
    };
    // A marker of another kind counts as unknown.
    let seen = Some(("kind = ?", C::KIND));
    let listing = Listing { table: TABLE, key: &key, seen, document: DOCUMENT };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_if_set("node = ?", filter.node);
    query.and_if_set("name = ?", filter.name.clone());
    query.page(&key, after, page.descending, page.limit);
    let (sql, values) = query.into_parts();
    let rows = connection.rows(sql, values).await?;
    listing.read(connection, rows, page.limit, part, read).await
}

/// Refuses a node whose chassis does not exist.
pub(crate) async fn check_chassis(
    connection: &mut Connection,
    node: &Node,
) -> Result<(), StoreError> {
    let Some(id) = node.chassis else { return Ok(()) };
    match find::<Chassis>(connection, id).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::NoOwner { owner: "chassis", id }),
    }
}

/// The values for `INSERT` and `UPDATE`.
fn columns<C: Content>(it: &Stored<C>) -> Result<Vec<Column>, StoreError> {
    let document = serde_json::to_string(&it.content)
        .map_err(|error| StoreError::corrupt(TABLE, &it.id.to_string(), error))?;
    Ok(columns![
        id: it.id,
        version: it.version,
        kind: C::KIND,
        created_at: it.created_at,
        updated_at: it.updated_at,
        node: it.content.node(),
        name: it.content.name().map(str::to_owned),
        document: document,
    ])
}

/// Reads the resource in a row of `SELECT`.
fn read<C: Content>(row: &Row) -> Result<Stored<C>, StoreError> {
    Ok(Stored {
        id: row.parse(TABLE, 0)?,
        version: row.int(1)?,
        created_at: row.time(TABLE, 2)?,
        updated_at: row.optional_time(TABLE, 3)?,
        content: row.json(TABLE, DOCUMENT)?,
    })
}

/// Converts the database's refusal of a resource into an error that names the field.
fn refused<C: Content>(it: &Stored<C>, error: SqlError) -> StoreError {
    if let Some(node) = it.content.node().filter(|_| is_missing_owner(&error)) {
        return no_node(node);
    }
    match (violated_unique_column(&error).as_deref(), it.content.name()) {
        (Some("name"), Some(name)) => {
            StoreError::Duplicate { field: "name", value: name.to_owned() }
        }
        (Some(_), _) => StoreError::Duplicate { field: "uuid", value: it.id.to_string() },
        (None, _) => error.into(),
    }
}
