//! The table `allocations`.

use std::collections::BTreeSet;

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationState, AllocationUuid, NodeName,
    NodeUuid, Page, Reservation,
};
use database::documents::{self, known_part};
use database::table::{
    Listing, PagePart, PageRows, changed_one, is_missing_owner, violated_unique_column,
};
use database::{
    Column, Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, columns, program,
    values,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::table::no_node;

const TABLE: &str = "allocations";

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, updated_at, name, state, node, resource_class, owner, document FROM allocations";

/// The fields of an allocation without a column of their own.
#[derive(Serialize, Deserialize)]
struct Document {
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    traits: BTreeSet<String>,
    candidate_nodes: Vec<NodeUuid>,
    extra: Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservation: Option<Reservation>,
}

pub(crate) async fn insert(connection: &mut Connection, allocation: &Allocation) -> Result<()> {
    let written = columns::insert_numbered(connection, TABLE, columns(allocation)?).await;
    written.map_err(|error| refused(allocation, error))
}

pub(crate) async fn update(
    connection: &mut Connection,
    allocation: &Allocation,
) -> Result<Allocation> {
    let (columns, refused) = (|| columns(allocation), |error| refused(allocation, error));
    let known = known_part::<Document>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)?;
    Ok(Allocation { version: allocation.version + 1, ..allocation.clone() })
}

/// The number of failed allocations that are kept for each project, and for all callers without a project together.
pub(crate) const MAX_FAILED: i64 = 300;

/// Deletes the oldest failed allocations of the owner of `failed` beyond the limit. `failed` itself is kept, even if a clock that went back
/// has made it the oldest.
pub(crate) async fn trim_failed(connection: &mut Connection, failed: &Allocation) -> Result<()> {
    const OF_PROJECT: &str = "DELETE FROM allocations WHERE state = $1 AND owner = $4 AND id <> $2 AND (created_at, id) <= \
         (SELECT created_at, id FROM allocations WHERE state = $1 AND owner = $4 AND id <> $2 \
         ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $3)";
    const OF_NOBODY: &str = "DELETE FROM allocations WHERE state = $1 AND owner IS NULL AND id <> $2 AND (created_at, id) <= \
         (SELECT created_at, id FROM allocations WHERE state = $1 AND owner IS NULL AND id <> $2 \
         ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $3)";
    // `failed` itself takes one of the places.
    let others = MAX_FAILED - 1;
    let mut values = values![AllocationState::Error.as_str(), failed.id, others];
    match failed.owner.as_deref() {
        Some(owner) => {
            values.push(owner.into());
            connection.execute(OF_PROJECT, values).await?;
        }
        None => {
            connection.execute(OF_NOBODY, values).await?;
        }
    }
    Ok(())
}

/// Deletes an allocation whatever its version. A missing allocation is not an error.
pub(crate) async fn remove(connection: &mut Connection, id: AllocationUuid) -> Result<()> {
    connection.execute("DELETE FROM allocations WHERE id = $1", values![id]).await?;
    Ok(())
}

/// Deletes an allocation, if its version has not changed since it was read.
pub(crate) async fn delete(connection: &mut Connection, allocation: &Allocation) -> Result<()> {
    const DELETE: &str = "DELETE FROM allocations WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![allocation.id, allocation.version]).await?)
}

pub(crate) async fn find(
    connection: &mut Connection,
    id: AllocationUuid,
) -> Result<Option<Allocation>> {
    let mut query = Query::new(SELECT);
    query.and_value("id = ?", id);
    Ok(all(connection, query).await?.pop())
}

pub(crate) async fn find_by_name(
    connection: &mut Connection,
    name: &NodeName,
) -> Result<Option<Allocation>> {
    let mut query = Query::new(SELECT);
    query.and_value("name = ?", name.as_str());
    Ok(all(connection, query).await?.pop())
}

/// Counts the reservations of a project. The reservations without a project are counted together.
pub(crate) async fn count_reserved(
    connection: &mut Connection,
    owner: Option<&str>,
) -> Result<u64> {
    let mut query = Query::new("SELECT count(*) FROM allocations");
    query.and("reserved = 1");
    match owner {
        Some(owner) => query.and_value("owner = ?", owner),
        None => query.and("owner IS NULL"),
    }
    let row = query.row(connection).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs())
}

/// Counts the allocations of a project, except reservations and failed ones.
pub(crate) async fn count_limited(connection: &mut Connection, owner: &str) -> Result<u64> {
    const COUNT: &str =
        "SELECT count(*) FROM allocations WHERE owner = $1 AND state <> $2 AND reserved = 0";
    let row = connection.row(COUNT, values![owner, AllocationState::Error.as_str()]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs())
}

/// Counts the allocations in each state that has any.
pub(crate) async fn tally(connection: &mut Connection) -> Result<Vec<(AllocationState, u64)>> {
    let query = Query::new("SELECT state, count(*) FROM allocations").grouped_by("state");
    let tally = |row: &Row| Ok((row.parse(TABLE, 0)?, row.int(1)?.unsigned_abs()));
    query.rows(connection).await?.iter().map(tally).collect()
}

/// The condition for rows that a project may see.
const VISIBLE: &str = "owner = ?";

/// Returns one page of the allocations that match `filter`, or a part of it.
pub(crate) async fn list(
    connection: &mut Connection,
    filter: &AllocationFilter,
    page: &Page<AllocationSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Allocation>> {
    let key = key(page.sort);
    let AllocationFilter { node, resource_class, state, owner, reserved, seen_by } = filter;
    let seen = seen_by.as_deref().map(|project| (VISIBLE, project));
    let listing = Listing { table: TABLE, key: &key, seen, document: 8 };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_if_set("node = ?", *node);
    query.and_if_set("resource_class = ?", resource_class.as_deref());
    query.and_if_set("state = ?", state.map(|state| state.as_str()));
    query.and_if_set("owner = ?", owner.as_deref());
    query.and_if_set("reserved = ?", *reserved);
    query.and_if_set(VISIBLE, seen_by.as_deref());
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

/// Returns the sort key. A missing value sorts before all others: the number in its place is earlier than any timestamp.
fn key(sort: AllocationSort) -> Key {
    let text = |sql| Key { sql, is_number: false, tie: Tie::Seq };
    let number = |sql| Key { sql, is_number: true, tie: Tie::Seq };
    match sort {
        AllocationSort::Creation => number("seq"),
        AllocationSort::CreatedAt => number("created_at"),
        AllocationSort::Id => text("id"),
        AllocationSort::Name => text("coalesce(name, '')"),
        AllocationSort::State => text("state"),
        AllocationSort::ResourceClass => text("coalesce(resource_class, '')"),
        AllocationSort::Owner => text("coalesce(owner, '')"),
        AllocationSort::UpdatedAt => number("coalesce(updated_at, -400000000000000000)"),
    }
}

async fn all(connection: &mut Connection, query: Query) -> Result<Vec<Allocation>> {
    query.rows(connection).await?.iter().map(read).collect()
}

/// The values for `INSERT` and `UPDATE`.
fn columns(allocation: &Allocation) -> Result<Vec<Column>> {
    let document = Document {
        created_at: allocation.created_at,
        last_error: allocation.last_error.clone(),
        traits: allocation.traits.clone(),
        candidate_nodes: allocation.candidate_nodes.clone(),
        extra: allocation.extra.clone(),
        reservation: allocation.reservation.clone(),
    };
    let document = serde_json::to_string(&document)
        .map_err(|error| StoreError::corrupt(TABLE, &allocation.id.to_string(), error))?;
    Ok(columns![
        id: allocation.id,
        version: allocation.version,
        created_at: allocation.created_at,
        updated_at: allocation.updated_at,
        name: allocation.name.as_ref().map(|name| name.as_str()),
        state: allocation.state.as_str(),
        node: allocation.node,
        resource_class: allocation.resource_class.as_deref(),
        owner: allocation.owner.as_deref(),
        document: document,
        written_by: program::NUMBER,
        reserved: allocation.reservation.is_some(),
    ])
}

/// Reads the allocation in a row of `SELECT`.
fn read(row: &Row) -> Result<Allocation> {
    let document: Document = row.json(TABLE, 8)?;
    let name = row
        .optional_text(3)?
        .map(|name| name.parse().map_err(|error| StoreError::corrupt(TABLE, name, error)));
    let node = row
        .optional_text(5)?
        .map(|id| id.parse().map_err(|error| StoreError::corrupt(TABLE, id, error)));
    Ok(Allocation {
        id: row.parse(TABLE, 0)?,
        version: row.int(1)?,
        created_at: document.created_at,
        updated_at: row.optional_time(TABLE, 2)?,
        name: name.transpose()?,
        state: row.parse(TABLE, 4)?,
        last_error: document.last_error,
        node: node.transpose()?,
        resource_class: row.optional_text(6)?.map(str::to_owned),
        traits: document.traits,
        candidate_nodes: document.candidate_nodes,
        extra: document.extra,
        owner: row.optional_text(7)?.map(str::to_owned),
        reservation: document.reservation,
    })
}

/// Converts the database's refusal of an allocation into an error that names the field.
fn refused(allocation: &Allocation, error: SqlError) -> StoreError {
    if let Some(node) = allocation.node
        && is_missing_owner(&error)
    {
        return no_node(node);
    }
    match violated_unique_column(&error).as_deref() {
        Some("name") => StoreError::Duplicate {
            field: "name",
            value: allocation.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        },
        Some("node") => StoreError::Duplicate {
            field: "node",
            value: allocation.node.map(|node| node.to_string()).unwrap_or_default(),
        },
        Some(_) => StoreError::Duplicate { field: "uuid", value: allocation.id.to_string() },
        None => error.into(),
    }
}
