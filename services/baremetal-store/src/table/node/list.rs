//! Lists and counts of nodes: filters and sort orders.

use baremetal_core::{Driver, Fault, Maintenance, Node, NodeFilter, NodeSort, Page, State};
use database::table::{Listing, PagePart, PageRows};
use database::{Connection, Key, Query, Result, Row, StoreError, Tie, Value, values};
use jiff::Timestamp;

use super::{SELECT, TABLE, power_state, read};

/// The condition for rows that a project may see.
pub(super) const VISIBLE: &str = "(owner = ? OR lessee = ?)";

/// The number of nodes in the same condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCount {
    pub state: State,
    /// Whether work, a change of power or a drain is in progress.
    pub is_busy: bool,
    /// Whether the last work failed.
    pub is_failed: bool,
    pub count: u64,
}

/// How much of each node a list reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeDetail {
    Whole,
    /// The id, version, name, instance UUID, states, owner and lessee, and whether the node is in maintenance, but not why. Everything else
    /// is as in a new node. Without its document, a node needs a fifth of the time.
    Summary,
}

const SUMMARY: &str = "SELECT id, version, updated_at, power_state, name, instance_uuid, provision_state, maintenance, owner, lessee \
     FROM nodes";

/// Returns one page of the nodes that match `filter`, or a part of it.
pub(crate) async fn list(
    connection: &mut Connection,
    filter: &NodeFilter,
    page: &Page<NodeSort>,
    part: Option<&PagePart>,
    detail: NodeDetail,
) -> Result<PageRows<Node>> {
    let key = key(page.sort);
    let seen = filter.seen_by.as_deref().map(|project| (VISIBLE, project));
    let (columns, document, read): (_, _, fn(&Row) -> Result<Node>) = match detail {
        NodeDetail::Whole => (SELECT, 4, read),
        NodeDetail::Summary => (SUMMARY, 0, summary),
    };
    let listing = Listing { table: TABLE, key: &key, seen, document };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(columns);
    add_conditions(&mut query, filter);
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

/// Reads a row of [`SUMMARY`].
fn summary(row: &Row) -> Result<Node> {
    let text = |column| Ok::<_, StoreError>(row.optional_text(column)?.map(str::to_owned));
    let (name, instance) = (row.optional_text(4)?, row.optional_text(5)?);
    let is_maintained = row.int(7)? != 0;
    Ok(Node {
        version: row.int(1)?,
        updated_at: row.optional_time(TABLE, 2)?,
        power_state: power_state(row, 3)?,
        name: name.map(|_| row.parse(TABLE, 4)).transpose()?,
        instance_uuid: instance.map(|_| row.parse(TABLE, 5)).transpose()?,
        provision_state: row.parse(TABLE, 6)?,
        maintenance: is_maintained.then(|| Maintenance::requested(None)),
        owner: text(8)?,
        lessee: text(9)?,
        ..Node::new(row.parse(TABLE, 0)?, Driver::FakeHardware, Timestamp::UNIX_EPOCH)
    })
}

/// Counts the nodes without a parent by state, restricted to the nodes that the project `seen_by` may see.
pub(crate) async fn tally(
    connection: &mut Connection,
    seen_by: Option<&str>,
) -> Result<Vec<NodeCount>> {
    let mut query = Query::new("SELECT provision_state, busy, failed, count(*) FROM nodes");
    query.and("parent_node IS NULL");
    query.and_if_set(VISIBLE, seen_by);
    let tally = |row: &Row| {
        Ok(NodeCount {
            state: row.parse("nodes", 0)?,
            is_busy: row.int(1)? != 0,
            is_failed: row.int(2)? != 0,
            count: row.int(3)?.unsigned_abs(),
        })
    };
    let rows = query.grouped_by("provision_state, busy, failed").rows(connection).await?;
    rows.iter().map(tally).collect()
}

/// Counts the nodes with each fault. The index of faults has the nodes that have one.
pub(crate) async fn tally_faults(connection: &mut Connection) -> Result<Vec<(Fault, u64)>> {
    let mut query = Query::new("SELECT fault, count(*) FROM nodes");
    query.and("fault IS NOT NULL");
    let tally = |row: &Row| {
        let text = row.text(0)?;
        let fault = Fault::find(text);
        let fault = fault.ok_or_else(|| StoreError::corrupt("nodes", text, "no such fault"))?;
        Ok((fault, row.int(1)?.unsigned_abs()))
    };
    let rows = query.grouped_by("fault").rows(connection).await?;
    rows.iter().map(tally).collect()
}

/// A shard with the number of its nodes; nodes without a shard are counted together.
pub type ShardCount = (Option<String>, u64);

/// Returns a part of the shards, nodes without a shard first. A part continues after a shard.
pub(crate) async fn shards(
    connection: &mut Connection,
    limit: u32,
    after: Option<&Option<String>>,
) -> Result<PageRows<ShardCount, Option<String>>> {
    const NONE: &str = "SELECT count(*) FROM nodes WHERE shard IS NULL";
    let mut found = Vec::new();
    if after.is_none() {
        let row = connection.row(NONE, values![]).await?;
        let count = row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs();
        found.extend((count > 0).then_some((None, count)));
    }
    let mut query = Query::new("SELECT shard, count(*) FROM nodes");
    query.and("shard IS NOT NULL");
    query.and_if_set("shard > ?", after.and_then(Option::as_deref));
    let rows = query.first_groups("shard", limit).rows(connection).await?;
    for row in &rows {
        found.push((Some(row.text(0)?.to_owned()), row.int(1)?.unsigned_abs()));
    }
    let is_full = rows.len() >= limit as usize;
    let more = found.last().filter(|_| is_full).map(|(shard, _)| shard.clone());
    Ok(PageRows { found, more })
}

fn add_conditions(query: &mut Query, filter: &NodeFilter) {
    let NodeFilter {
        instance_uuid,
        associated,
        maintenance,
        fault,
        provision_state,
        driver,
        resource_class,
        conductor_group,
        owner,
        lessee,
        project,
        seen_by,
        shard,
        sharded,
        retired,
        description_contains,
        parent_node,
        include_children,
        instance_name,
        chassis,
        rack,
        busy,
        failed,
    } = filter;
    query.and_if_set("instance_uuid = ?", *instance_uuid);
    and_if_known(query, "instance_uuid", *associated);
    query.and_if_set("maintenance = ?", *maintenance);
    query.and_if_set("fault = ?", fault.map(Fault::as_str));
    query.and_if_set("provision_state = ?", provision_state.map(|state| state.as_str()));
    query.and_if_set("driver = ?", driver.map(|driver| driver.as_str()));
    query.and_if_set("resource_class = ?", resource_class.as_deref());
    query.and_if_set("conductor_group = ?", conductor_group.as_deref());
    query.and_if_set("owner = ?", owner.as_deref());
    query.and_if_set("lessee = ?", lessee.as_deref());
    query.and_if_set(VISIBLE, project.as_deref());
    query.and_if_set(VISIBLE, seen_by.as_deref());
    if !shard.is_empty() {
        query.and_any("shard", shard.iter().map(|shard| Value::from(shard.as_str())));
    }
    and_if_known(query, "shard", *sharded);
    query.and_if_set("retired = ?", *retired);
    query.and_containing("description", description_contains.as_deref());
    query.and_if_set("parent_node = ?", *parent_node);
    if parent_node.is_none() && !include_children {
        query.and("parent_node IS NULL");
    }
    query.and_if_set("instance_name = ?", instance_name.as_deref());
    query.and_if_set("chassis = ?", *chassis);
    query.and_if_set("rack = ?", rack.as_deref());
    and_if_is(query, "busy", *busy);
    and_if_is(query, "failed", *failed);
}

/// Adds the condition that `column` is set or not set, if the filter asks for one.
fn and_if_known(query: &mut Query, column: &str, known: Option<bool>) {
    match known {
        Some(true) => query.and(&format!("{column} IS NOT NULL")),
        Some(false) => query.and(&format!("{column} IS NULL")),
        None => {}
    }
}

/// Adds the condition that `column` is 1 or 0, if the filter asks for one. The value is written into the statement, because the partial
/// indexes only match a literal.
fn and_if_is(query: &mut Query, column: &str, is: Option<bool>) {
    match is {
        Some(true) => query.and(&format!("{column} = 1")),
        Some(false) => query.and(&format!("{column} = 0")),
        None => {}
    }
}

/// Returns the sort key. A missing value sorts before all others: the number in its place is earlier than any timestamp.
fn key(sort: NodeSort) -> Key {
    let text = |sql| Key { sql, is_number: false, tie: Tie::Seq };
    let number = |sql| Key { sql, is_number: true, tie: Tie::Seq };
    match sort {
        NodeSort::Creation => number("seq"),
        NodeSort::CreatedAt => number("created_at"),
        NodeSort::Id => text("id"),
        NodeSort::Name => text("coalesce(name, '')"),
        NodeSort::ProvisionState => text("provision_state"),
        NodeSort::PowerState => text("coalesce(power_state, '')"),
        NodeSort::Driver => text("driver"),
        NodeSort::ResourceClass => text("coalesce(resource_class, '')"),
        NodeSort::UpdatedAt => number("coalesce(updated_at, -400000000000000000)"),
        NodeSort::ProvisionUpdatedAt => {
            number("coalesce(provision_updated_at, -400000000000000000)")
        }
        NodeSort::InstanceUuid => text("coalesce(instance_uuid, '')"),
        NodeSort::Maintenance => number("maintenance"),
        NodeSort::Owner => text("coalesce(owner, '')"),
        NodeSort::Lessee => text("coalesce(lessee, '')"),
        NodeSort::ConductorGroup => text("conductor_group"),
        NodeSort::Position => number("coalesce(position, -1)"),
    }
}
