//! The table `resources`: one row for each resource that is stored as one document.

use baremetal_core::{
    Chassis, Content, DeployTemplate, InspectionRule, Node, NodeUuid, Page, Port, PortGroup,
    Runbook, Stored, StoredFilter, StoredSort, VolumeTarget,
};
use database::documents::{self, known_part};
use database::table::{
    Listing, PagePart, PageRows, changed_one, is_missing_owner, violated_unique_column,
};
use database::{
    Column, Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, columns, program,
    values,
};
use serde_json::Value;
use uuid::Uuid;

use crate::secrets;
use crate::table::{check_limit, no_node};

const TABLE: &str = "resources";

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, created_at, updated_at, document FROM resources";

/// The index of the document in `SELECT`.
const DOCUMENT: usize = 4;

/// The condition for rows that a project may see.
const fn visible<C: Content>() -> &'static str {
    match C::HAS_OWNER {
        true => "(owner = ? OR is_public = 1)",
        false => "node IN (SELECT id FROM nodes WHERE owner = ? OR lessee = ?)",
    }
}

pub(crate) async fn insert<C: Content>(
    connection: &mut Connection,
    it: &Stored<C>,
    document: &Value,
) -> Result<()> {
    let written = columns::insert_numbered(connection, TABLE, columns(it, document)).await;
    written.map_err(|error| refused(it, error))
}

/// Refuses a new resource whose project or node has too many of its kind.
pub(crate) async fn check_count<C: Content>(
    connection: &mut Connection,
    it: &Stored<C>,
) -> Result<()> {
    const OF_PROJECT: &str = "SELECT count(*) FROM resources WHERE kind = $1 AND owner = $2";
    const OF_NODE: &str = "SELECT count(*) FROM resources WHERE kind = $1 AND node = $2";
    let (count, id, holder) = match (it.content.owner(), it.content.node()) {
        (Some(owner), _) => (OF_PROJECT, database::Value::from(owner), "project"),
        (None, Some(node)) => (OF_NODE, node.into(), "node"),
        (None, None) => return Ok(()),
    };
    let row = connection.row(count, values![C::KIND, id]).await?;
    check_limit(C::KIND, holder, row.map_or(Ok(0), |row| row.int(0))?)
}

pub(crate) async fn update<C: Content>(
    connection: &mut Connection,
    it: &Stored<C>,
    document: &Value,
) -> Result<Stored<C>> {
    let (columns, refused) = (|| Ok(columns(it, document)), |error| refused(it, error));
    let known = known_part::<C>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)?;
    Ok(Stored { version: it.version + 1, ..it.clone() })
}

pub(crate) async fn delete(connection: &mut Connection, id: Uuid, version: i64) -> Result<()> {
    const DELETE: &str = "DELETE FROM resources WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![id, version]).await?)
}

pub(crate) async fn delete_all<C: Content>(connection: &mut Connection) -> Result<()> {
    const DELETE: &str = "DELETE FROM resources WHERE kind = $1";
    connection.execute(DELETE, values![C::KIND]).await?;
    Ok(())
}

/// Returns all resources of the kind, in the order of their creation.
pub(crate) async fn all_of_kind<C: Content>(connection: &mut Connection) -> Result<Vec<Stored<C>>> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    let query = query.first_by("seq", false, u32::MAX);
    query.rows(connection).await?.iter().map(read).collect()
}

pub(crate) async fn find<C: Content>(
    connection: &mut Connection,
    id: Uuid,
) -> Result<Option<Stored<C>>> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_value("id = ?", id);
    query.row(connection).await?.map(|row| read(&row)).transpose()
}

pub(crate) async fn find_by_name<C: Content>(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<Stored<C>>> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_value("name = ?", name.to_owned());
    query.row(connection).await?.map(|row| read(&row)).transpose()
}

pub(crate) async fn of_node<C: Content>(
    connection: &mut Connection,
    node: NodeUuid,
) -> Result<Vec<Stored<C>>> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_value("node = ?", node);
    query.rows(connection).await?.iter().map(read).collect()
}

/// Returns the resources with any of these names, in the order of the names.
pub(crate) async fn find_by_names<C: Content>(
    connection: &mut Connection,
    names: &[String],
) -> Result<Vec<Stored<C>>> {
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_any("name", names.iter().map(|name| database::Value::from(name.as_str())));
    let limit = names.len().try_into().unwrap_or(u32::MAX);
    query.first_by("name", false, limit).rows(connection).await?.iter().map(read).collect()
}

/// Returns one page of the resources that match `filter`, or a part of it.
pub(crate) async fn list<C: Content>(
    connection: &mut Connection,
    filter: &StoredFilter,
    page: &Page<StoredSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Stored<C>>> {
    let key = match page.sort {
        StoredSort::Creation => Key { sql: "seq", is_number: true, tie: Tie::Seq },
        StoredSort::CreatedAt => Key { sql: "created_at", is_number: true, tie: Tie::Seq },
        StoredSort::Id => Key { sql: "id", is_number: false, tie: Tie::Seq },
        StoredSort::Name => Key { sql: "coalesce(name, '')", is_number: false, tie: Tie::Seq },
        StoredSort::Key => Key { sql: "coalesce(key, '')", is_number: false, tie: Tie::Seq },
        StoredSort::Owner => Key { sql: "coalesce(owner, '')", is_number: false, tie: Tie::Seq },
        StoredSort::Public => Key { sql: "is_public", is_number: true, tie: Tie::Seq },
        StoredSort::UpdatedAt => {
            Key { sql: "coalesce(updated_at, -400000000000000000)", is_number: true, tie: Tie::Seq }
        }
    };
    // A marker that the caller may not see counts as unknown.
    let seen = filter.seen_by.as_deref().map_or(("kind = ?", C::KIND), |it| (visible::<C>(), it));
    let listing = Listing { table: TABLE, key: &key, seen: Some(seen), document: DOCUMENT };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_value("kind = ?", C::KIND);
    query.and_if_set("node = ?", filter.node);
    query.and_if_set("key = ?", filter.key.clone());
    query.and_node_with("shard", &filter.shards);
    query.and_node_with("conductor_group", &filter.conductor_groups);
    query.and_if_set(visible::<C>(), filter.seen_by.as_deref());
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

/// Locks a resource until the end of the transaction, so that nothing begins to refer to it while another transaction deletes it. Returns
/// whether the resource exists.
pub(crate) async fn lock<C: Content>(connection: &mut Connection, id: Uuid) -> Result<bool> {
    // An update without a change: it locks the row on both databases.
    const LOCK: &str = "UPDATE resources SET version = version WHERE id = $1 AND kind = $2";
    Ok(connection.execute(LOCK, values![id, C::KIND]).await? == 1)
}

/// Locks the rows of all resources of a node until the end of the transaction.
pub(crate) async fn lock_of_node(connection: &mut Connection, node: NodeUuid) -> Result<()> {
    const LOCK: &str = "UPDATE resources SET version = version WHERE node = $1";
    Ok(connection.execute(LOCK, values![node]).await.map(drop)?)
}

/// Whether another resource refers to this one.
pub(crate) async fn is_in_use<C: Content>(connection: &mut Connection, id: Uuid) -> Result<bool> {
    let any = match C::KIND {
        Chassis::KIND => "SELECT id FROM nodes WHERE chassis = $1 LIMIT 1",
        PortGroup::KIND => "SELECT id FROM ports WHERE portgroup = $1 LIMIT 1",
        _ => return Ok(false),
    };
    Ok(connection.row(any, values![id]).await?.is_some())
}

/// Refuses a port whose group does not exist, and keeps the group from being deleted before the end of the transaction.
pub(crate) async fn check_group(connection: &mut Connection, port: &Port) -> Result<()> {
    let Some(id) = port.portgroup else { return Ok(()) };
    lock::<PortGroup>(connection, id).await?;
    match find::<PortGroup>(connection, id).await? {
        Some(group) if group.content.node == port.node => Ok(()),
        Some(_) | None => Err(StoreError::NoOwner { owner: "port group", id }),
    }
}

/// Refuses a node whose chassis does not exist, and keeps the chassis from being deleted before the end of the transaction.
pub(crate) async fn check_chassis(connection: &mut Connection, node: &Node) -> Result<()> {
    let Some(id) = node.chassis else { return Ok(()) };
    match lock::<Chassis>(connection, id).await? {
        true => Ok(()),
        false => Err(StoreError::NoOwner { owner: "chassis", id }),
    }
}

/// A resource's row as the re-encryption of secrets sees it.
pub(crate) struct SealedRow {
    pub(crate) id: Uuid,
    pub(crate) version: i64,
    pub(crate) document: Value,
    /// The fields of the document that may contain secrets.
    pub(crate) parts: &'static [&'static str],
}

/// Returns the resources that `key` has sealed; with `None`, the resources that have not been scanned yet.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: Option<&str>,
) -> Result<Vec<SealedRow>> {
    let mut query = Query::new("SELECT id, version, kind, document FROM resources");
    match key {
        Some(key) => query.and_value("sealed_by = ?", key),
        None => query.and("sealed_by IS NULL"),
    }
    let read = |row: &Row| {
        Ok(SealedRow {
            id: row.parse(TABLE, 0)?,
            version: row.int(1)?,
            document: row.json(TABLE, 3)?,
            parts: secret_fields(row.text(2)?),
        })
    };
    query.rows(connection).await?.iter().map(read).collect()
}

/// Replaces the document of a row whose secrets were sealed, unless the row was written meanwhile. The version stays.
pub(crate) async fn reseal(connection: &mut Connection, row: &SealedRow) -> Result<bool> {
    const RESEAL: &str =
        "UPDATE resources SET document = $3, sealed_by = $4 WHERE id = $1 AND version = $2";
    let sealed_by = secrets::resource_sealed_by(&row.document, row.parts);
    let values = values![row.id, row.version, row.document.to_string(), sealed_by];
    Ok(connection.execute(RESEAL, values).await? == 1)
}

fn secret_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        VolumeTarget::KIND => VolumeTarget::SECRETS,
        DeployTemplate::KIND => DeployTemplate::SECRETS,
        Runbook::KIND => Runbook::SECRETS,
        InspectionRule::KIND => InspectionRule::SECRETS,
        _ => &[],
    }
}

/// The values for `INSERT` and `UPDATE`; `document` is the content with its secrets sealed.
fn columns<C: Content>(it: &Stored<C>, document: &Value) -> Vec<Column> {
    columns![
        id: it.id,
        version: it.version,
        kind: C::KIND,
        created_at: it.created_at,
        updated_at: it.updated_at,
        node: it.content.node(),
        name: it.content.name().map(str::to_owned),
        key: it.content.key(),
        owner: it.content.owner().map(str::to_owned),
        is_public: it.content.is_public(),
        document: document.to_string(),
        written_by: program::NUMBER,
        sealed_by: secrets::resource_sealed_by(document, C::SECRETS),
    ]
}

/// Reads the resource in a row of `SELECT`.
fn read<C: Content>(row: &Row) -> Result<Stored<C>> {
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
    let value = match violated_unique_column(&error).as_deref() {
        Some("name") => it.content.name().map(|name| ("name", name.to_owned())),
        Some("key") => it.content.key().map(|key| (C::KEY, key)),
        Some(_) => Some(("uuid", it.id.to_string())),
        None => None,
    };
    match value {
        Some((field, value)) => StoreError::Duplicate { field, value },
        None => error.into(),
    }
}
