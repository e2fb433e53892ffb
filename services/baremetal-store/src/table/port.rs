//! The table `ports`.

use crate::table::{IDS_AT_ONCE, check_limit, no_node};
use database::documents::{self, known_part};
use database::table::{
    Listing, PagePart, PageRows, changed_one, is_missing_owner, violated_unique_column,
};
use database::{
    Column, Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, Value, columns,
    program, values,
};
use std::borrow::Cow;
use std::collections::HashMap;

use baremetal_core::{NodeUuid, Page, Port, PortFilter, PortSort, PortUuid};
use hardware::MacAddress;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use uuid::Uuid;

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, updated_at, node, address, document, name FROM ports";

/// The fields of a port without a column of their own.
#[derive(Serialize, Deserialize)]
struct Document<'a> {
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    pxe_enabled: bool,
    local_link_connection: Cow<'a, Map<String, serde_json::Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_network: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    portgroup: Option<Uuid>,
    is_smartnic: bool,
    #[serde(default = "yes")]
    available_for_dynamic_portgroup: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vif: Option<Cow<'a, str>>,
    extra: Cow<'a, Map<String, serde_json::Value>>,
}

const fn yes() -> bool {
    true
}

pub(crate) async fn insert(connection: &mut Connection, port: &Port) -> Result<()> {
    let written = columns::insert_numbered(connection, "ports", columns(port)?).await;
    written.map_err(|error| refused(port, error))
}

/// Refuses a new port of a node that has too many.
pub(crate) async fn check_count(connection: &mut Connection, node: NodeUuid) -> Result<()> {
    const COUNT: &str = "SELECT count(*) FROM ports WHERE node = $1";
    let row = connection.row(COUNT, values![node]).await?;
    check_limit("ports", "node", row.map_or(Ok(0), |row| row.int(0))?)
}

/// Returns the number of ports of each of `nodes` that has any.
pub(crate) async fn counts(
    connection: &mut Connection,
    nodes: &[NodeUuid],
) -> Result<HashMap<NodeUuid, usize>> {
    let mut counts = HashMap::new();
    for nodes in nodes.chunks(IDS_AT_ONCE) {
        let mut query = Query::new("SELECT node, count(*) FROM ports");
        query.and_any("node", nodes.iter().map(|node| Value::from(*node)));
        for row in query.grouped_by("node").rows(connection).await? {
            let count = usize::try_from(row.int(1)?).unwrap_or_default();
            counts.insert(row.parse("ports", 0)?, count);
        }
    }
    Ok(counts)
}

pub(crate) async fn update(connection: &mut Connection, port: &Port) -> Result<Port> {
    let (columns, refused) = (|| columns(port), |error| refused(port, error));
    let known = known_part::<Document<'static>>;
    changed_one(documents::update(connection, "ports", columns, known, refused).await?)?;
    Ok(Port { version: port.version + 1, ..port.clone() })
}

/// Writes ports in the order of their ids, as every writer of several ports does.
pub(crate) async fn update_all(connection: &mut Connection, ports: &[Port]) -> Result<()> {
    let mut ports: Vec<&Port> = ports.iter().collect();
    ports.sort_by_key(|port| port.id);
    for port in ports {
        update(connection, port).await?;
    }
    Ok(())
}

pub(crate) async fn delete(connection: &mut Connection, port: &Port) -> Result<()> {
    const DELETE: &str = "DELETE FROM ports WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![port.id, port.version]).await?)
}

/// Deletes a port whatever its version. A missing port is not an error.
pub(crate) async fn remove(connection: &mut Connection, port: PortUuid) -> Result<()> {
    connection.execute("DELETE FROM ports WHERE id = $1", values![port]).await?;
    Ok(())
}

pub(crate) async fn find(connection: &mut Connection, port: PortUuid) -> Result<Option<Port>> {
    let mut query = Query::new(SELECT);
    query.and_value("id = ?", port);
    Ok(all(connection, query).await?.pop())
}

pub(crate) async fn find_by_address(
    connection: &mut Connection,
    address: MacAddress,
) -> Result<Option<Port>> {
    let mut query = Query::new(SELECT);
    query.and_value("address = ?", address.to_string());
    Ok(all(connection, query).await?.pop())
}

pub(crate) async fn find_by_name(connection: &mut Connection, name: &str) -> Result<Option<Port>> {
    let mut query = Query::new(SELECT);
    query.and_value("name = ?", name);
    Ok(all(connection, query).await?.pop())
}

/// Returns the ports of `node`, sorted by address.
pub(crate) async fn of(connection: &mut Connection, node: NodeUuid) -> Result<Vec<Port>> {
    let mut query = Query::new(SELECT);
    query.and_value("node = ?", node);
    let mut ports = all(connection, query).await?;
    ports.sort_by_key(|port| port.address);
    Ok(ports)
}

pub(crate) async fn of_group(connection: &mut Connection, group: Uuid) -> Result<Vec<Port>> {
    let mut query = Query::new(SELECT);
    query.and_value("portgroup = ?", group);
    all(connection, query).await
}

/// The condition for rows that a project may see.
const VISIBLE: &str = "node IN (SELECT id FROM nodes WHERE owner = ? OR lessee = ?)";

/// Returns one page of the ports that match `filter`, or a part of it.
pub(crate) async fn list(
    connection: &mut Connection,
    filter: &PortFilter,
    page: &Page<PortSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Port>> {
    let key = match page.sort {
        PortSort::Creation => Key { sql: "seq", is_number: true, tie: Tie::Seq },
        PortSort::CreatedAt => Key { sql: "created_at", is_number: true, tie: Tie::Seq },
        PortSort::Id => Key { sql: "id", is_number: false, tie: Tie::Seq },
        PortSort::Address => Key { sql: "address", is_number: false, tie: Tie::Seq },
        PortSort::UpdatedAt => {
            Key { sql: "coalesce(updated_at, -400000000000000000)", is_number: true, tie: Tie::Seq }
        }
    };
    let PortFilter {
        node,
        addresses,
        portgroup,
        description_contains,
        shards,
        conductor_groups,
        seen_by,
    } = filter;
    let seen = seen_by.as_deref().map(|project| (VISIBLE, project));
    let listing = Listing { table: "ports", key: &key, seen, document: 5 };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_if_set("node = ?", *node);
    if !addresses.is_empty() {
        query.and_any("address", addresses.iter().map(|address| Value::from(address.to_string())));
    }
    query.and_if_set("portgroup = ?", *portgroup);
    query.and_containing("description", description_contains.as_deref());
    query.and_node_with("shard", shards);
    query.and_node_with("conductor_group", conductor_groups);
    query.and_if_set(VISIBLE, seen_by.as_deref());
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

async fn all(connection: &mut Connection, query: Query) -> Result<Vec<Port>> {
    query.rows(connection).await?.iter().map(read).collect()
}

/// The values for `INSERT` and `UPDATE`.
fn columns(port: &Port) -> Result<Vec<Column>> {
    let text = |text: &'_ Option<String>| text.clone().map(Cow::Owned);
    let document = Document {
        created_at: port.created_at,
        description: text(&port.description),
        pxe_enabled: port.pxe_enabled,
        local_link_connection: Cow::Borrowed(&port.local_link_connection),
        physical_network: text(&port.physical_network),
        portgroup: port.portgroup,
        is_smartnic: port.is_smartnic,
        available_for_dynamic_portgroup: port.available_for_dynamic_portgroup,
        vendor: text(&port.vendor),
        category: text(&port.category),
        vif: text(&port.vif),
        extra: Cow::Borrowed(&port.extra),
    };
    let document = serde_json::to_string(&document)
        .map_err(|error| StoreError::corrupt("ports", &port.id.to_string(), error))?;
    Ok(columns![
        id: port.id,
        version: port.version,
        created_at: port.created_at,
        updated_at: port.updated_at,
        node: port.node,
        address: port.address.to_string(),
        portgroup: port.portgroup,
        name: port.name.clone(),
        description: port.description.clone(),
        document: document,
        written_by: program::NUMBER,
    ])
}

fn read(row: &Row) -> Result<Port> {
    let document: Document<'static> = row.json("ports", 5)?;
    let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    Ok(Port {
        id: row.parse("ports", 0)?,
        version: row.int(1)?,
        created_at: document.created_at,
        updated_at: row.optional_time("ports", 2)?,
        node: row.parse("ports", 3)?,
        address: row.parse("ports", 4)?,
        name: row.optional_text(6)?.map(str::to_owned),
        description: text(document.description),
        pxe_enabled: document.pxe_enabled,
        local_link_connection: document.local_link_connection.into_owned(),
        physical_network: text(document.physical_network),
        portgroup: document.portgroup,
        is_smartnic: document.is_smartnic,
        available_for_dynamic_portgroup: document.available_for_dynamic_portgroup,
        vendor: text(document.vendor),
        category: text(document.category),
        vif: text(document.vif),
        extra: document.extra.into_owned(),
    })
}

/// Converts the database's refusal of a port into an error that names the field.
fn refused(port: &Port, error: SqlError) -> StoreError {
    if is_missing_owner(&error) {
        return no_node(port.node);
    }
    match violated_unique_column(&error).as_deref() {
        Some("address") => {
            StoreError::Duplicate { field: "address", value: port.address.to_string() }
        }
        Some("name") => {
            let value = port.name.clone().unwrap_or_default();
            StoreError::Duplicate { field: "name", value }
        }
        Some(_) => StoreError::Duplicate { field: "uuid", value: port.id.to_string() },
        None => error.into(),
    }
}
