//! The table `clusters`.

use cluster_core::{Cluster, ClusterSort, ClusterUuid, Ident, Page};
use database::documents::{self, known_part};
use database::table::{Listing, PagePart, PageRows, changed_one};
use database::{
    Column, Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, columns, program,
    values,
};
use newtype_uuid::GenericUuid;

use super::{deleted, refused};
use crate::Scope;

const TABLE: &str = "clusters";
const SELECT: &str = "SELECT id, version, document FROM clusters";

pub(crate) async fn insert(connection: &mut Connection, cluster: &Cluster) -> Result<()> {
    let written = columns::insert(connection, TABLE, columns(cluster)?).await;
    written.map_err(|error| refuse(cluster, error))
}

pub(crate) async fn update(connection: &mut Connection, cluster: &Cluster) -> Result<Cluster> {
    let (columns, refused) = (|| columns(cluster), |error| refuse(cluster, error));
    let known = known_part::<Cluster>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)?;
    Ok(Cluster { version: cluster.version + 1, ..cluster.clone() })
}

/// `Stale` unless the cluster's version is still the one that was read.
pub(crate) async fn check_version(connection: &mut Connection, cluster: &Cluster) -> Result<()> {
    const FIND: &str = "SELECT id FROM clusters WHERE id = $1 AND version = $2";
    let row = connection.row(FIND, values![cluster.id, cluster.version]).await?;
    changed_one(u64::from(row.is_some()))
}

/// Raises the version, because something around the cluster changed. `Stale` unless its version is still the one that was read.
pub(crate) async fn touch(connection: &mut Connection, cluster: &Cluster) -> Result<()> {
    const TOUCH: &str = "UPDATE clusters SET version = $2 + 1 WHERE id = $1 AND version = $2";
    changed_one(connection.execute(TOUCH, values![cluster.id, cluster.version]).await?)
}

/// Returns the clusters with these ids.
pub(crate) async fn some(connection: &mut Connection, ids: &[ClusterUuid]) -> Result<Vec<Cluster>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = Query::new(SELECT);
    query.and_any("id", ids.iter().map(|&id| id.into()));
    query.rows(connection).await?.iter().map(read).collect()
}

pub(crate) async fn delete(connection: &mut Connection, cluster: &Cluster) -> Result<()> {
    const DELETE: &str = "DELETE FROM clusters WHERE id = $1 AND version = $2";
    deleted(connection.execute(DELETE, values![cluster.id, cluster.version]).await, "its ledger")
}

/// Returns the clusters with this id or name in `scope`.
pub(crate) async fn find(
    connection: &mut Connection,
    ident: &Ident,
    scope: &Scope,
) -> Result<Vec<Cluster>> {
    let mut query = Query::new(SELECT);
    match ident {
        Ident::Id(id) => query.and_value("id = ?", *id),
        Ident::Name(name) => query.and_value("name = ?", name.as_str()),
    }
    query.and_if_set("project = ?", scope.project());
    query.first_by_id(100).rows(connection).await?.iter().map(read).collect()
}

/// Returns one page of the clusters in `scope`.
pub(crate) async fn list(
    connection: &mut Connection,
    scope: &Scope,
    page: &Page<ClusterSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Cluster>> {
    let key = match page.sort {
        ClusterSort::CreatedAt => Key { sql: "created_at", is_number: true, tie: Tie::Id },
        ClusterSort::Id => Key { sql: "id", is_number: false, tie: Tie::Id },
        ClusterSort::Name => Key { sql: "name", is_number: false, tie: Tie::Id },
    };
    let seen = scope.project().map(|own| ("project = ?", own));
    let listing = Listing { table: TABLE, key: &key, seen, document: 2 };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_if_set("project = ?", scope.project());
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

/// Returns the numbers of clusters and members in `scope`.
pub(crate) async fn count(connection: &mut Connection, scope: &Scope) -> Result<(u64, u64)> {
    let mut clusters = Query::new("SELECT count(*) FROM clusters");
    clusters.and_if_set("project = ?", scope.project());
    let mut machines = Query::new(
        "SELECT cast(coalesce(sum(node_count), 0) AS BIGINT) FROM node_groups \
         JOIN clusters ON clusters.id = node_groups.cluster",
    );
    machines.and_if_set("clusters.project = ?", scope.project());
    let mut counts = [0, 0];
    for (count, query) in counts.iter_mut().zip([clusters, machines]) {
        let row = query.row(connection).await?;
        *count = row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs();
    }
    Ok(counts.into())
}

/// Returns the clusters that have no row in `holdings`.
pub(crate) async fn uncounted(connection: &mut Connection) -> Result<Vec<Cluster>> {
    const UNCOUNTED: &str = "SELECT id, version, document FROM clusters \
         WHERE NOT EXISTS (SELECT 1 FROM holdings WHERE holdings.cluster = clusters.id) ORDER BY id";
    connection.rows(UNCOUNTED, values![]).await?.iter().map(read).collect()
}

pub(crate) async fn ids(connection: &mut Connection) -> Result<Vec<ClusterUuid>> {
    let rows = connection.rows("SELECT id FROM clusters ORDER BY id", values![]).await?;
    rows.iter().map(|row| row.parse(TABLE, 0)).collect()
}

fn read(row: &Row) -> Result<Cluster> {
    let cluster: Cluster = row.json(TABLE, 2)?;
    Ok(Cluster { id: row.parse(TABLE, 0)?, version: row.int(1)?, ..cluster })
}

fn columns(cluster: &Cluster) -> Result<Vec<Column>> {
    let document = serde_json::to_string(cluster)
        .map_err(|error| StoreError::corrupt(TABLE, &cluster.id.to_string(), error))?;
    Ok(columns![
        id: cluster.id,
        version: cluster.version,
        created_at: cluster.created_at,
        project: cluster.project.as_str(),
        name: cluster.name.as_str(),
        template: cluster.template,
        document: document,
        written_by: program::NUMBER,
    ])
}

fn refuse(cluster: &Cluster, error: SqlError) -> StoreError {
    let owner = ("template", cluster.template.into_untyped_uuid());
    refused(error, cluster.name.as_str(), &cluster.id, owner)
}
