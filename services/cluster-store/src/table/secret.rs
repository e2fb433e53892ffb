//! The table `secrets`. The caller seals a secret before it is stored.

use cluster_core::ClusterUuid;
use database::{Connection, Query, Result, Row, values};
use sealing::id_of;

use super::{of_cluster, refused};
use crate::SealedSecret;

const TABLE: &str = "secrets";
const SELECT: &str = "SELECT cluster, name, sealed FROM secrets";

/// Writes a secret, and replaces an existing one of this name.
pub(crate) async fn save(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
    sealed: &str,
) -> Result<()> {
    const SAVE: &str = "INSERT INTO secrets (cluster, name, sealed, sealed_by) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (cluster, name) DO UPDATE SET sealed = $3, sealed_by = $4";
    let written = connection.execute(SAVE, values![cluster, name, sealed, id_of(sealed)]).await;
    written.map(drop).map_err(|error| refused(error, name, &cluster, of_cluster(cluster)))
}

/// Writes a secret unless one of this name exists. Returns the one that is stored then.
pub(crate) async fn keep(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
    sealed: &str,
) -> Result<String> {
    const KEEP: &str = "INSERT INTO secrets (cluster, name, sealed, sealed_by) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (cluster, name) DO NOTHING";
    let written = connection.execute(KEEP, values![cluster, name, sealed, id_of(sealed)]).await;
    written.map_err(|error| refused(error, name, &cluster, of_cluster(cluster)))?;
    Ok(find(connection, cluster, name).await?.unwrap_or_else(|| sealed.to_owned()))
}

/// Deletes a secret, if it exists.
pub(crate) async fn delete(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
) -> Result<()> {
    const DELETE: &str = "DELETE FROM secrets WHERE cluster = $1 AND name = $2";
    connection.execute(DELETE, values![cluster, name]).await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
) -> Result<Option<String>> {
    const FIND: &str = "SELECT sealed FROM secrets WHERE cluster = $1 AND name = $2";
    let row = connection.row(FIND, values![cluster, name]).await?;
    Ok(row.map(|row| row.text(0).map(str::to_owned)).transpose()?)
}

/// Returns the next `limit` secrets sealed with this key, in the order of cluster and name.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: &str,
    after: Option<&SealedSecret>,
    limit: u32,
) -> Result<Vec<SealedSecret>> {
    const FIRST: &str = "SELECT cluster, name, sealed FROM secrets WHERE sealed_by = $1 ORDER BY cluster, name LIMIT $2";
    const NEXT: &str = "SELECT cluster, name, sealed FROM secrets WHERE sealed_by = $1 AND (cluster, name) > ($3, $4) \
         ORDER BY cluster, name LIMIT $2";
    let rows = match after {
        None => connection.rows(FIRST, values![key, limit]).await?,
        Some(after) => {
            let values = values![key, limit, after.cluster, after.name.as_str()];
            connection.rows(NEXT, values).await?
        }
    };
    rows.iter().map(read).collect()
}

/// Returns the secrets whose sealing key is not recorded.
pub(crate) async fn sealed_by_unknown(connection: &mut Connection) -> Result<Vec<SealedSecret>> {
    let mut query = Query::new(SELECT);
    query.and("sealed_by IS NULL");
    query.rows(connection).await?.iter().map(read).collect()
}

/// Writes a re-encrypted secret, unless the secret changed since it was read. Returns whether it was written.
pub(crate) async fn reseal(
    connection: &mut Connection,
    old: &SealedSecret,
    sealed: &str,
) -> Result<bool> {
    const RESEAL: &str = "UPDATE secrets SET sealed = $4, sealed_by = $5 WHERE cluster = $1 AND name = $2 AND sealed = $3";
    let (name, was) = (old.name.as_str(), old.sealed.as_str());
    let values = values![old.cluster, name, was, sealed, id_of(sealed)];
    Ok(connection.execute(RESEAL, values).await? == 1)
}

fn read(row: &Row) -> Result<SealedSecret> {
    Ok(SealedSecret {
        cluster: row.parse(TABLE, 0)?,
        name: row.text(1)?.to_owned(),
        sealed: row.text(2)?.to_owned(),
    })
}
