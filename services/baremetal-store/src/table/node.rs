//! The table `nodes`.

mod document;
mod free;
mod list;

use baremetal_core::{Node, NodeIdent, NodeName, NodeUuid, State};
use database::table::{changed_one, violated_unique_column};
use database::{AssertSqlSafe, Connection, Query, Row, SqlError, StoreError, Value, values};
use hardware::PowerState;
use jiff::Timestamp;

pub(crate) use free::FreeNodeSearch;
pub use list::{NodeCount, ShardCount};
pub(crate) use list::{list, shards, tally};

use crate::secrets;
use document::Document;

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, updated_at, power_state, document FROM nodes";

const INSERT: &str = "INSERT INTO nodes (id, version, created_at, updated_at, power_state, name, instance_uuid, \
    instance_name, driver, provision_state, provision_updated_at, resource_class, conductor_group, owner, lessee, \
    shard, parent_node, chassis, description, rack, position, maintenance, retired, busy, lent, document, sealed_by, joining, \
    host, failed) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, \
    $23, $24, $25, $26, $27, $28, $29, $30)";

const UPDATE: &str = "UPDATE nodes SET version = $2 + 1, created_at = $3, updated_at = $4, power_state = $5, \
    name = $6, instance_uuid = $7, instance_name = $8, driver = $9, provision_state = $10, \
    provision_updated_at = $11, resource_class = $12, conductor_group = $13, owner = $14, lessee = $15, shard = $16, \
    parent_node = $17, chassis = $18, description = $19, rack = $20, position = $21, maintenance = $22, \
    retired = $23, busy = $24, lent = $25, document = $26, sealed_by = $27, joining = $28, host = $29, failed = $30 \
    WHERE id = $1 AND version = $2";

/// Updates the columns without an index, if all columns with an index are unchanged; updates nothing otherwise. SQLite rewrites the index
/// of every column that a statement sets, even to the same value, and the indexes are most of what a change writes.
const UPDATE_REST: &str = "UPDATE nodes SET version = $2 + 1, updated_at = $4, power_state = $5, instance_name = $8, driver = $9, \
    provision_updated_at = $11, resource_class = $12, conductor_group = $13, shard = $16, chassis = $18, description = $19, \
    maintenance = $22, retired = $23, document = $26 \
    WHERE id = $1 AND version = $2 AND created_at = $3 AND name IS NOT DISTINCT FROM $6 AND instance_uuid IS NOT DISTINCT FROM $7 \
    AND provision_state = $10 AND owner IS NOT DISTINCT FROM $14 AND lessee IS NOT DISTINCT FROM $15 \
    AND parent_node IS NOT DISTINCT FROM $17 AND rack IS NOT DISTINCT FROM $20 AND position IS NOT DISTINCT FROM $21 \
    AND busy = $24 AND lent = $25 AND sealed_by IS NOT DISTINCT FROM $27 AND joining = $28 AND host IS NOT DISTINCT FROM $29 \
    AND failed = $30";

/// The number of ids in one statement.
const IDS_AT_ONCE: usize = 500;

pub(crate) async fn insert(connection: &mut Connection, node: &Node) -> Result<(), StoreError> {
    let written = connection.execute(INSERT, columns(node)?).await;
    written.map(drop).map_err(|error| refused(node, error))
}

pub(crate) async fn update(connection: &mut Connection, node: &Node) -> Result<Node, StoreError> {
    let columns = columns(node)?;
    let is_written = match connection {
        Connection::Sqlite(_) => connection.execute(UPDATE_REST, columns.clone()).await? == 1,
        // PostgreSQL finds unchanged index columns by itself.
        Connection::Postgres(_) => false,
    };
    if !is_written {
        let written = connection.execute(UPDATE, columns).await;
        changed_one(written.map_err(|error| refused(node, error))?)?;
    }
    Ok(Node { version: node.version + 1, ..node.clone() })
}

/// Returns the next `limit` nodes by id that `key` has sealed; with `None`, the nodes that have not been scanned yet.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: Option<&str>,
    after: Option<NodeUuid>,
    limit: u32,
) -> Result<Vec<Node>, StoreError> {
    let mut query = Query::new(SELECT);
    match key {
        Some(key) => query.and_value("sealed_by = ?", key),
        None => query.and("sealed_by IS NULL"),
    }
    query.and_if_set("id > ?", after);
    let (sql, values) = query.first_by_id(limit);
    connection.rows(sql, values).await?.iter().map(read).collect()
}

/// Writes the re-encrypted secrets of a node, and returns whether it did: a node that was written since it was read is skipped. Nothing
/// else of the node changes.
pub(crate) async fn reseal(connection: &mut Connection, node: &Node) -> Result<bool, StoreError> {
    const RESEAL: &str = "UPDATE nodes SET version = version + 1, document = $3, sealed_by = $4 \
         WHERE id = $1 AND version = $2";
    let values = values![node.id, node.version, document_of(node)?, secrets::node_sealed_by(node)];
    Ok(connection.execute(RESEAL, values).await? == 1)
}

/// Deletes a node and, through foreign keys, everything that belongs to it.
pub(crate) async fn delete(connection: &mut Connection, node: &Node) -> Result<(), StoreError> {
    const DELETE: &str = "DELETE FROM nodes WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![node.id, node.version]).await?)
}

pub(crate) async fn find(
    connection: &mut Connection,
    ident: &NodeIdent,
) -> Result<Option<Node>, StoreError> {
    const BY_ID: &str =
        "SELECT id, version, updated_at, power_state, document FROM nodes WHERE id = $1";
    const BY_NAME: &str =
        "SELECT id, version, updated_at, power_state, document FROM nodes WHERE name = $1";
    let row = match ident {
        NodeIdent::Id(id) => connection.row(BY_ID, values![*id]).await?,
        NodeIdent::Name(name) => connection.row(BY_NAME, values![name.as_str()]).await?,
    };
    row.as_ref().map(read).transpose()
}

pub(crate) async fn count(connection: &mut Connection) -> Result<u64, StoreError> {
    let row = connection.row("SELECT count(*) FROM nodes", values![]).await?;
    let count = row.map_or(Ok(0), |row| row.int(0))?;
    Ok(count.unsigned_abs())
}

/// Sets the power state of the nodes that have another power state and still this version; returns how many they were.
pub(crate) async fn record_power(
    connection: &mut Connection,
    nodes: &[(NodeUuid, i64)],
    power: PowerState,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut changed = 0;
    for nodes in nodes.chunks(IDS_AT_ONCE) {
        let places = || (3..).step_by(2).take(nodes.len());
        let ids: Vec<String> = places().map(|n| format!("${n}")).collect();
        let read: Vec<String> = places().map(|n| format!("(${n}, ${})", n + 1)).collect();
        let sql = format!(
            "UPDATE nodes SET power_state = $1, updated_at = $2, version = version + 1 \
             WHERE (power_state IS NULL OR power_state <> $1) \
             AND id IN ({}) AND (id, version) IN (VALUES {})",
            ids.join(", "),
            read.join(", ")
        );
        let mut values = values![power.as_str(), now];
        values.extend(nodes.iter().flat_map(|(id, version)| values![*id, *version]));
        changed += connection.execute(AssertSqlSafe(sql), values).await?;
    }
    Ok(changed as usize)
}

/// Returns the nodes with work, a change of power, a drain or a lease, and those on their way into the cloud or out of it.
pub(crate) async fn unfinished(
    connection: &mut Connection,
) -> Result<Vec<(NodeUuid, i64)>, StoreError> {
    const UNFINISHED: &str = "SELECT id, version FROM nodes WHERE busy = 1 \
         UNION SELECT id, version FROM nodes WHERE lent = 1 \
         UNION SELECT id, version FROM nodes WHERE joining = 1 ORDER BY id";
    let rows = connection.rows(UNFINISHED, values![]).await?;
    rows.iter().map(|row| Ok((row.parse("nodes", 0)?, row.int(1)?))).collect()
}

/// Returns the nodes whose power state is refreshed regularly: their BMC was verified, and nothing is in progress.
pub(crate) async fn sweep_page(
    connection: &mut Connection,
    after: Option<NodeUuid>,
    limit: u32,
) -> Result<Vec<Node>, StoreError> {
    let mut query = Query::new(SELECT);
    query.and("busy = 0");
    query.and_value("provision_state <> ?", State::Enroll.as_str());
    query.and_if_set("id > ?", after);
    let (sql, values) = query.first_by_id(limit);
    connection.rows(sql, values).await?.iter().map(read).collect()
}

/// Returns the nodes with these ids, in any order.
pub(crate) async fn find_by_ids(
    connection: &mut Connection,
    ids: &[NodeUuid],
) -> Result<Vec<Node>, StoreError> {
    any(connection, "id", ids.iter().map(|id| Value::from(*id)).collect()).await
}

/// Returns the nodes with these names, in any order; unknown names are left out.
pub(crate) async fn find_by_names(
    connection: &mut Connection,
    names: &[&NodeName],
) -> Result<Vec<Node>, StoreError> {
    any(connection, "name", names.iter().map(|name| Value::from(name.as_str())).collect()).await
}

async fn any(
    connection: &mut Connection,
    column: &str,
    values: Vec<Value>,
) -> Result<Vec<Node>, StoreError> {
    let mut found = Vec::new();
    for values in values.chunks(IDS_AT_ONCE) {
        let mut query = Query::new(SELECT);
        query.and_any(column, values.iter().cloned());
        let (sql, values) = query.into_parts();
        for row in connection.rows(sql, values).await? {
            found.push(read(&row)?);
        }
    }
    Ok(found)
}

fn document_of(node: &Node) -> Result<String, StoreError> {
    document::write(node).map_err(|error| StoreError::corrupt("nodes", &node.id.to_string(), error))
}

/// The values for `INSERT` and `UPDATE`.
fn columns(node: &Node) -> Result<Vec<Value>, StoreError> {
    let place = node.place.as_ref();
    Ok(values![
        node.id,
        node.version,
        node.created_at,
        node.updated_at,
        node.power_state.map(|power| power.as_str()),
        node.name.as_ref().map(|name| name.as_str()),
        node.instance_uuid,
        node.instance_name.as_deref(),
        node.driver.as_str(),
        node.provision_state.as_str(),
        node.provision_updated_at,
        node.resource_class.as_deref(),
        node.conductor_group.as_str(),
        node.owner.as_deref(),
        node.lessee.as_deref(),
        node.shard.as_deref(),
        node.parent_node,
        node.chassis,
        node.description.as_deref(),
        place.map(|place| place.rack.as_str()),
        place.map(|place| place.position),
        node.maintenance.is_some(),
        node.retired.is_some(),
        node.work.is_some() || node.power_request.is_some() || node.leaving.is_some(),
        node.lending.is_some(),
        document_of(node)?,
        secrets::node_sealed_by(node),
        node.looks_at_cloud(),
        node.hypervisor.as_ref().map(|hypervisor| hypervisor.host.as_str()),
        node.failure.is_some(),
    ])
}

/// Reads the node in a row of `SELECT`.
fn read(row: &Row) -> Result<Node, StoreError> {
    let Document(node) = row.json("nodes", 4)?;
    let power_state = match row.optional_text(3)? {
        None => None,
        Some(word) => Some(
            [PowerState::On, PowerState::Off]
                .into_iter()
                .find(|state| state.as_str() == word)
                .ok_or_else(|| StoreError::corrupt("nodes", word, "unknown power state"))?,
        ),
    };
    Ok(Node {
        id: row.parse("nodes", 0)?,
        version: row.int(1)?,
        updated_at: row.optional_time("nodes", 2)?,
        power_state,
        ..node
    })
}

/// Converts the database's refusal of a node into an error that names the value which another node has.
fn refused(node: &Node, error: SqlError) -> StoreError {
    match violated_unique_column(&error).as_deref() {
        Some("name") => StoreError::Duplicate {
            field: "name",
            value: node.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        },
        Some("instance_uuid") => StoreError::Duplicate {
            field: "instance_uuid",
            value: node.instance_uuid.map(|id| id.to_string()).unwrap_or_default(),
        },
        Some("host") => StoreError::Duplicate {
            field: "host",
            value: node.hypervisor.as_ref().map(|it| it.host.clone()).unwrap_or_default(),
        },
        Some(_) => StoreError::Duplicate { field: "uuid", value: node.id.to_string() },
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_either_written_or_compared() {
        let set = UPDATE.split_once(" SET ").and_then(|(_, rest)| rest.split_once(" WHERE "));
        let (rest, only) = UPDATE_REST.split_once(" WHERE ").unwrap();
        let written: Vec<&str> = rest.split_once(" SET ").unwrap().1.split(", ").collect();
        for one in set.unwrap().0.split(", ") {
            let (column, value) = one.split_once(" = ").unwrap();
            let compared =
                [format!("{column} = {value}"), format!("{column} IS NOT DISTINCT FROM {value}")];
            let is_compared = only.split(" AND ").any(|it| compared.contains(&it.to_owned()));
            assert!(written.contains(&one) != is_compared, "{one}");
        }
    }
}
