//! How many nodes can be allocated, are in use, or are withheld.

use std::collections::BTreeMap;

use baremetal_core::State;
use database::{Connection, Query, Result, Row};

/// The nodes without a parent of one resource class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCapacity {
    /// The resource class; `None` for nodes without one.
    pub class: Option<String>,
    /// The nodes that an allocation can reserve now.
    pub free: u64,
    /// The nodes with an instance, and those that run a system.
    pub used: u64,
    /// All other nodes, such as nodes in maintenance or with work in progress.
    pub withheld: u64,
}

/// Counts the nodes of each resource class. Reads the whole table, without the documents.
pub(crate) async fn capacity(connection: &mut Connection) -> Result<Vec<ClassCapacity>> {
    let mut query = Query::new(
        "SELECT resource_class, provision_state, \
         cast(CASE WHEN instance_uuid IS NULL THEN 0 ELSE 1 END AS BIGINT) AS taken, \
         cast(CASE WHEN maintenance = 0 AND retired = 0 AND busy = 0 AND power_state IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS fit, \
         count(*) FROM nodes",
    );
    query.and("parent_node IS NULL");
    let grouped = query.grouped_by("resource_class, provision_state, taken, fit");
    let mut classes: BTreeMap<Option<String>, ClassCapacity> = BTreeMap::new();
    for row in &grouped.rows(connection).await? {
        let class = row.optional_text(0)?.map(str::to_owned);
        let entry = classes.entry(class.clone());
        let counted = entry.or_insert_with(|| ClassCapacity { class, ..ClassCapacity::default() });
        add(counted, row)?;
    }
    Ok(classes.into_values().collect())
}

/// Adds a row of the query to the numbers of its class.
fn add(counted: &mut ClassCapacity, row: &Row) -> Result<()> {
    let state: State = row.parse("nodes", 1)?;
    let (is_taken, is_fit) = (row.int(2)? != 0, row.int(3)? != 0);
    let number = if is_taken || state.is_in_use() {
        &mut counted.used
    } else if is_fit && state == State::Available {
        &mut counted.free
    } else {
        &mut counted.withheld
    };
    *number += row.int(4)?.unsigned_abs();
    Ok(())
}

/// Counts the nodes that have a lease, by the index of such nodes.
pub(crate) async fn count_lent(connection: &mut Connection) -> Result<u64> {
    let mut query = Query::new("SELECT count(*) FROM nodes");
    query.and("lent = 1");
    let row = query.row(connection).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs())
}
