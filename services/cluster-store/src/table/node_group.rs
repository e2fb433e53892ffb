//! The table `node_groups`.

use std::collections::BTreeMap;

use cluster_core::{ClusterUuid, NodeGroup};
use database::documents::{self, known_part};
use database::table::changed_one;
use database::{
    Column, Connection, Query, Result, Row, SqlError, StoreError, columns, program, values,
};

use super::{of_cluster, refused};

const TABLE: &str = "node_groups";

pub(crate) async fn insert(connection: &mut Connection, group: &NodeGroup) -> Result<()> {
    let written = columns::insert(connection, TABLE, columns(group)?).await;
    written.map_err(|error| refuse(group, error))
}

pub(crate) async fn update(connection: &mut Connection, group: &NodeGroup) -> Result<()> {
    let (columns, refused) = (|| columns(group), |error| refuse(group, error));
    let known = known_part::<NodeGroup>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)
}

pub(crate) async fn delete(connection: &mut Connection, group: &NodeGroup) -> Result<()> {
    const DELETE: &str = "DELETE FROM node_groups WHERE id = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![group.id, group.version]).await?)
}

/// Returns the node groups of `cluster`, oldest first.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: ClusterUuid,
) -> Result<Vec<NodeGroup>> {
    const OF: &str = "SELECT id, version, document FROM node_groups WHERE cluster = $1 ORDER BY created_at, name";
    connection.rows(OF, values![cluster]).await?.iter().map(read).collect()
}

/// Returns the node groups of each of `clusters`, oldest first.
pub(crate) async fn of_each(
    connection: &mut Connection,
    clusters: &[ClusterUuid],
) -> Result<BTreeMap<ClusterUuid, Vec<NodeGroup>>> {
    let mut of_each: BTreeMap<ClusterUuid, Vec<NodeGroup>> = BTreeMap::new();
    if clusters.is_empty() {
        return Ok(of_each);
    }
    let mut query = Query::new("SELECT id, version, document FROM node_groups");
    query.and_any("cluster", clusters.iter().map(|&cluster| cluster.into()));
    for row in query.rows(connection).await? {
        let group = read(&row)?;
        of_each.entry(group.cluster).or_default().push(group);
    }
    for groups in of_each.values_mut() {
        groups
            .sort_by(|a, b| (a.created_at, a.name.as_str()).cmp(&(b.created_at, b.name.as_str())));
    }
    Ok(of_each)
}

fn read(row: &Row) -> Result<NodeGroup> {
    let group: NodeGroup = row.json(TABLE, 2)?;
    Ok(NodeGroup { id: row.parse(TABLE, 0)?, version: row.int(1)?, ..group })
}

fn columns(group: &NodeGroup) -> Result<Vec<Column>> {
    let document = serde_json::to_string(group)
        .map_err(|error| StoreError::corrupt(TABLE, &group.id.to_string(), error))?;
    Ok(columns![
        id: group.id,
        version: group.version,
        cluster: group.cluster,
        name: group.name.as_str(),
        created_at: group.created_at,
        node_count: group.node_count(),
        document: document,
        written_by: program::NUMBER,
    ])
}

fn refuse(group: &NodeGroup, error: SqlError) -> StoreError {
    refused(error, group.name.as_str(), &group.id, of_cluster(group.cluster))
}
