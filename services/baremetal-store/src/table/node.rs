//! The table `nodes`.

mod capacity;
mod document;
mod free;
mod list;

use baremetal_core::{BmcIdentity, Fault, Node, NodeIdent, NodeName, NodeUuid, State};
use database::table::{changed_one, violated_unique_column};
use database::{
    AssertSqlSafe, Column, Connection, Query, Result, Row, SqlError, StoreError, Value, columns,
    documents, program, values,
};
use hardware::PowerState;
use jiff::Timestamp;

pub use capacity::ClassCapacity;
pub(crate) use capacity::{capacity, count_lent};
pub(crate) use free::FreeNodeSearch;
pub use list::{NodeCount, NodeDetail, ShardCount};
pub(crate) use list::{list, shards, tally, tally_faults};

use crate::secrets;
use crate::table::IDS_AT_ONCE;
use document::Document;

const TABLE: &str = "nodes";

/// The field of [`StoreError::Duplicate`] for a BMC. The value is the id of the node that has the BMC.
pub const BMC_FIELD: &str = "bmc";

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, version, updated_at, power_state, document FROM nodes";

/// The columns with an index. SQLite rewrites the index of every column that a statement sets, even to the same value, and the indexes are
/// most of what a change writes. So an update sets only those that differ.
const INDEXED: [&str; 17] = [
    "created_at",
    "name",
    "instance_uuid",
    "provision_state",
    "owner",
    "lessee",
    "parent_node",
    "rack",
    "position",
    "busy",
    "lent",
    "sealed_by",
    "joining",
    "host",
    "failed",
    "bmc",
    "bmc_system",
];

/// The columns that decide whether two nodes share a BMC.
const BMC: [&str; 3] = ["bmc", "bmc_system", "parent_node"];

/// The address of a BMC that no program has recorded since the column exists.
const UNRECORDED: &str = "?";

/// The name of the lock under which nodes get BMCs, so that no two nodes get one at the same time.
const BMC_LOCK: &str = "bmcs";

/// Whether several nodes may name one BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedBmcs {
    /// A second node with a BMC is refused.
    #[default]
    Refused,
    Permitted,
}

pub(crate) async fn insert(connection: &mut Connection, node: &Node) -> Result<()> {
    let written = columns::insert_numbered(connection, TABLE, columns(node)?).await;
    written.map_err(|error| refused(node, error))
}

/// Refuses a node whose BMC is that of another node already. A node and its parent may share a BMC: they are parts of one machine.
///
/// The lock is held until the end of the transaction, so the answer is still true when the node is written.
pub(crate) async fn check_bmc(
    connection: &mut Connection,
    node: &Node,
    shared: SharedBmcs,
) -> Result<()> {
    let (SharedBmcs::Refused, Some(bmc)) = (shared, BmcIdentity::of(node)) else { return Ok(()) };
    connection.lock_name(BMC_LOCK).await?;
    match of_bmc(connection, &bmc, Some(node)).await? {
        Some(other) => Err(StoreError::Duplicate { field: BMC_FIELD, value: other.to_string() }),
        None => Ok(()),
    }
}

/// Returns a node with this BMC, other than `except` and the nodes with which `except` may share a BMC.
pub(crate) async fn of_bmc(
    connection: &mut Connection,
    bmc: &BmcIdentity,
    except: Option<&Node>,
) -> Result<Option<NodeUuid>> {
    let mut query = Query::new("SELECT id FROM nodes");
    query.and_value("bmc = ?", bmc.endpoint.as_str());
    query.and_if_set("(bmc_system IS NULL OR bmc_system = ?)", bmc.system.as_deref());
    if let Some(node) = except {
        query.and_value("id <> ?", node.id);
        query.and_value("(parent_node IS NULL OR parent_node <> ?)", node.id);
        query.and_if_set("id <> ?", node.parent_node);
    }
    query.first_by_id(1).row(connection).await?.map(|row| row.parse(TABLE, 0)).transpose()
}

/// Returns the first `limit` nodes other than `except` whose BMC answers at this endpoint.
pub(crate) async fn at_endpoint(
    connection: &mut Connection,
    endpoint: &str,
    except: NodeUuid,
    limit: u32,
) -> Result<Vec<Node>> {
    let mut query = Query::new(SELECT);
    query.and_value("bmc = ?", endpoint);
    query.and_value("id <> ?", except);
    query.first_by_id(limit).rows(connection).await?.iter().map(read).collect()
}

/// Returns the first `limit` nodes whose BMC no program has recorded.
pub(crate) async fn without_recorded_bmc(
    connection: &mut Connection,
    limit: u32,
) -> Result<Vec<Node>> {
    let mut query = Query::new(SELECT);
    query.and_value("bmc = ?", UNRECORDED);
    query.first_by_id(limit).rows(connection).await?.iter().map(read).collect()
}

/// Records the BMCs of these nodes, unless a later write did.
pub(crate) async fn record_bmcs(connection: &mut Connection, nodes: &[Node]) -> Result<()> {
    const RECORD: &str = "UPDATE nodes SET bmc = $2, bmc_system = $3 WHERE id = $1 AND bmc = $4";
    for node in nodes {
        let bmc = BmcIdentity::of(node);
        let endpoint = bmc.as_ref().map(|bmc| bmc.endpoint.as_str());
        let system = bmc.as_ref().and_then(|bmc| bmc.system.as_deref());
        connection.execute(RECORD, values![node.id, endpoint, system, UNRECORDED]).await?;
    }
    Ok(())
}

/// Updates a node like [`update`], and refuses a new BMC that is another node's. A node that keeps its BMC is not checked, because two nodes
/// may have shared one before it was refused.
pub(crate) async fn update_checked(
    connection: &mut Connection,
    node: Node,
    shared: SharedBmcs,
) -> Result<Node> {
    let mut columns = columns(&node)?;
    let kept = match connection {
        Connection::Sqlite(_) => unchanged(connection, &node, &columns).await?,
        Connection::Postgres(_) => {
            if write_beside_bmc(connection, &node, &columns).await?
                || documents::keep_unknown(connection, TABLE, &mut columns, document::known).await?
                    && write_beside_bmc(connection, &node, &columns).await?
            {
                return Ok(Node { version: node.version + 1, ..node });
            }
            Vec::new()
        }
    };
    if !BMC.iter().all(|name| kept.contains(name)) {
        check_bmc(connection, &node, shared).await?;
    }
    write(connection, node, columns, &kept).await
}

/// Writes a node that keeps its BMC; returns whether it keeps its BMC.
async fn write_beside_bmc(
    connection: &mut Connection,
    node: &Node,
    columns: &[Column],
) -> Result<bool> {
    let written = columns::update_except(connection, TABLE, columns.to_vec(), &BMC).await;
    Ok(written.map_err(|error| refused(node, error))? == 1)
}

pub(crate) async fn update(connection: &mut Connection, node: Node) -> Result<Node> {
    let columns = columns(&node)?;
    let kept = match connection {
        Connection::Sqlite(_) => unchanged(connection, &node, &columns).await?,
        // PostgreSQL finds unchanged index columns by itself.
        Connection::Postgres(_) => Vec::new(),
    };
    write(connection, node, columns, &kept).await
}

/// Returns the columns with an index that have these values already.
async fn unchanged(
    connection: &mut Connection,
    node: &Node,
    columns: &[Column],
) -> Result<Vec<&'static str>> {
    let sql = format!("SELECT {} FROM nodes WHERE id = $1 AND version = $2", INDEXED.join(", "));
    let row = connection.row(AssertSqlSafe(sql), values![node.id, node.version]).await?;
    let row = row.ok_or(StoreError::Stale)?;
    let mut unchanged = Vec::with_capacity(INDEXED.len());
    for (place, name) in INDEXED.into_iter().enumerate() {
        let column = columns.iter().find(|column| column.name == name);
        if column.map_or(Ok(false), |column| row.holds(place, &column.value))? {
            unchanged.push(name);
        }
    }
    Ok(unchanged)
}

/// Writes the columns of a node other than `kept`, if its version has not changed since it was read. The fields that only a newer program
/// knows are kept.
async fn write(
    connection: &mut Connection,
    node: Node,
    columns: Vec<Column>,
    kept: &[&str],
) -> Result<Node> {
    let written = columns::update_except(connection, TABLE, columns, kept).await;
    let mut written = written.map_err(|error| refused(&node, error))?;
    if written == 0 {
        let mut columns = self::columns(&node)?;
        if documents::keep_unknown(connection, TABLE, &mut columns, document::known).await? {
            let again = columns::update_except(connection, TABLE, columns, kept).await;
            written = again.map_err(|error| refused(&node, error))?;
        }
    }
    changed_one(written)?;
    Ok(Node { version: node.version + 1, ..node })
}

/// Returns the next `limit` nodes by id that `key` has sealed; with `None`, the nodes that have not been scanned yet.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: Option<&str>,
    after: Option<NodeUuid>,
    limit: u32,
) -> Result<Vec<Node>> {
    let mut query = Query::new(SELECT);
    match key {
        Some(key) => query.and_value("sealed_by = ?", key),
        None => query.and("sealed_by IS NULL"),
    }
    query.and_if_set("id > ?", after);
    query.first_by_id(limit).rows(connection).await?.iter().map(read).collect()
}

/// Writes the re-encrypted secrets of a node, and returns whether it did: a node that was written since it was read is skipped. Nothing
/// else of the node changes.
pub(crate) async fn reseal(connection: &mut Connection, node: &Node) -> Result<bool> {
    let columns = || -> Result<Vec<Column>> {
        Ok(columns![
            id: node.id,
            version: node.version,
            document: document_of(node)?,
            sealed_by: secrets::node_sealed_by(node),
            written_by: program::NUMBER,
        ])
    };
    let known = document::known;
    Ok(documents::update(connection, TABLE, columns, known, StoreError::from).await? == 1)
}

pub(crate) async fn keeps_chassis(connection: &mut Connection, node: &Node) -> Result<bool> {
    const KEEPS: &str = "SELECT id FROM nodes WHERE id = $1 AND chassis = $2";
    Ok(connection.row(KEEPS, values![node.id, node.chassis]).await?.is_some())
}

/// Locks the row of a node until the end of the transaction.
pub(crate) async fn lock(connection: &mut Connection, node: NodeUuid) -> Result<()> {
    // An update without a change: it locks the row on both databases.
    const LOCK: &str = "UPDATE nodes SET version = version WHERE id = $1";
    Ok(connection.execute(LOCK, values![node]).await.map(drop)?)
}

/// Deletes a node and, through foreign keys, everything that belongs to it.
pub(crate) async fn delete(connection: &mut Connection, node: &Node) -> Result<()> {
    const DELETE: &str = "DELETE FROM nodes WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![node.id, node.version]).await?)
}

pub(crate) async fn find(connection: &mut Connection, ident: &NodeIdent) -> Result<Option<Node>> {
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

pub(crate) async fn count(connection: &mut Connection) -> Result<u64> {
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
) -> Result<usize> {
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

/// The version of the record of a node, and its conductor group, which tells the conductor that works on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVersion {
    pub id: NodeUuid,
    pub version: i64,
    pub group: String,
}

/// Returns the nodes with work, a change of power, a drain or a lease, and those on their way into the cloud or out of it.
pub(crate) async fn unfinished(connection: &mut Connection) -> Result<Vec<NodeVersion>> {
    const UNFINISHED: &str = "SELECT id, version, conductor_group FROM nodes WHERE busy = 1 \
         UNION SELECT id, version, conductor_group FROM nodes WHERE lent = 1 \
         UNION SELECT id, version, conductor_group FROM nodes WHERE joining = 1 ORDER BY id";
    let rows = connection.rows(UNFINISHED, values![]).await?;
    rows.iter().map(version).collect()
}

fn version(row: &Row) -> Result<NodeVersion> {
    let group = row.text(2)?.to_owned();
    Ok(NodeVersion { id: row.parse(TABLE, 0)?, version: row.int(1)?, group })
}

/// The conductor group of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    pub id: NodeUuid,
    pub group: String,
    /// Whether work or a change is in progress.
    pub is_busy: bool,
}

/// Returns the conductor groups of all nodes.
pub(crate) async fn groups(connection: &mut Connection) -> Result<Vec<NodeGroup>> {
    const GROUPS: &str = "SELECT id, conductor_group, busy FROM nodes";
    let rows = connection.rows(GROUPS, values![]).await?;
    let read = |row: &Row| {
        let group = row.text(1)?.to_owned();
        Ok(NodeGroup { id: row.parse(TABLE, 0)?, group, is_busy: row.int(2)? != 0 })
    };
    rows.iter().map(read).collect()
}

/// Returns the nodes whose power state is refreshed regularly: their BMC was verified, and nothing is in progress.
pub(crate) async fn sweep_page(
    connection: &mut Connection,
    after: i64,
    limit: u32,
) -> Result<(Vec<NodeVersion>, Option<i64>)> {
    let mut query = Query::new("SELECT id, version, conductor_group, seq FROM nodes");
    query.and("busy = 0");
    query.and_value("provision_state <> ?", State::Enroll.as_str());
    query.and_value("seq > ?", after);
    let rows = query.first_by("seq", false, limit).rows(connection).await?;
    let last = rows.last().map(|row| row.int(3)).transpose()?;
    Ok((rows.iter().map(version).collect::<Result<_>>()?, last))
}

/// Returns the nodes with these ids, in any order.
pub(crate) async fn find_by_ids(
    connection: &mut Connection,
    ids: &[NodeUuid],
) -> Result<Vec<Node>> {
    any(connection, "id", ids.iter().map(|id| Value::from(*id)).collect()).await
}

/// Returns the nodes with these names, in any order; unknown names are left out.
pub(crate) async fn find_by_names(
    connection: &mut Connection,
    names: &[&NodeName],
) -> Result<Vec<Node>> {
    any(connection, "name", names.iter().map(|name| Value::from(name.as_str())).collect()).await
}

async fn any(connection: &mut Connection, column: &str, values: Vec<Value>) -> Result<Vec<Node>> {
    let mut found = Vec::new();
    for values in values.chunks(IDS_AT_ONCE) {
        let mut query = Query::new(SELECT);
        query.and_any(column, values.iter().cloned());
        for row in query.rows(connection).await? {
            found.push(read(&row)?);
        }
    }
    Ok(found)
}

fn document_of(node: &Node) -> Result<String> {
    document::write(node).map_err(|error| StoreError::corrupt(TABLE, &node.id.to_string(), error))
}

/// Whether work, a change or a drain is in progress.
pub(crate) fn is_busy(node: &Node) -> bool {
    node.work.is_some()
        || node.power_request.is_some()
        || node.boot_setting_request.is_some()
        || node.password_rotation.is_some()
        || !node.network_changes.are_done()
        || node.leaving.is_some()
}

fn columns(node: &Node) -> Result<Vec<Column>> {
    let (place, bmc) = (node.place.as_ref(), BmcIdentity::of(node));
    Ok(columns![
        id: node.id,
        version: node.version,
        created_at: node.created_at,
        updated_at: node.updated_at,
        power_state: node.power_state.map(|power| power.as_str()),
        name: node.name.as_ref().map(|name| name.as_str()),
        instance_uuid: node.instance_uuid,
        instance_name: node.instance_name.as_deref(),
        driver: node.driver.as_str(),
        provision_state: node.provision_state.as_str(),
        provision_updated_at: node.provision_updated_at,
        resource_class: node.resource_class.as_deref(),
        conductor_group: node.conductor_group.as_str(),
        owner: node.owner.as_deref(),
        lessee: node.lessee.as_deref(),
        shard: node.shard.as_deref(),
        parent_node: node.parent_node,
        chassis: node.chassis,
        description: node.description.as_deref(),
        rack: place.map(|place| place.rack.as_str()),
        position: place.map(|place| place.position),
        maintenance: node.maintenance.is_some(),
        retired: node.retired.is_some(),
        busy: is_busy(node),
        lent: node.lending.is_some(),
        document: document_of(node)?,
        written_by: program::NUMBER,
        sealed_by: secrets::node_sealed_by(node),
        joining: node.looks_at_cloud(),
        host: node.hypervisor.as_ref().map(|hypervisor| hypervisor.host.as_str()),
        failed: node.failure.is_some(),
        fault: node.fault().map(Fault::as_str),
        bmc: bmc.as_ref().map(|bmc| bmc.endpoint.as_str()),
        bmc_system: bmc.as_ref().and_then(|bmc| bmc.system.as_deref()),
    ])
}

fn read(row: &Row) -> Result<Node> {
    // A node is large, so it is changed in place.
    let Document(mut node) = row.json(TABLE, 4)?;
    node.id = row.parse(TABLE, 0)?;
    node.version = row.int(1)?;
    node.updated_at = row.optional_time(TABLE, 2)?;
    node.power_state = power_state(row, 3)?;
    Ok(node)
}

fn power_state(row: &Row, column: usize) -> Result<Option<PowerState>> {
    let find = |word| {
        PowerState::find(word)
            .ok_or_else(|| StoreError::corrupt(TABLE, word, "unknown power state"))
    };
    row.optional_text(column)?.map(find).transpose()
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
    use baremetal_core::Driver;

    use super::*;

    #[test]
    fn every_column_with_an_index_is_a_column() {
        let node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let columns = columns(&node).unwrap();
        for indexed in INDEXED {
            assert!(columns.iter().any(|column| column.name == indexed), "{indexed}");
        }
    }
}
