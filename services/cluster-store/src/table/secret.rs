//! The table `secrets`: sealed before they come here.

use cluster_core::ClusterUuid;
use database::{Connection, StoreError, values};

use super::{of_cluster, refused};

/// Writes a secret, whether there was one or not.
pub(crate) async fn save(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
    sealed: &str,
) -> Result<(), StoreError> {
    const SAVE: &str = "INSERT INTO secrets (cluster, name, sealed) VALUES ($1, $2, $3) \
         ON CONFLICT (cluster, name) DO UPDATE SET sealed = $3";
    let written = connection.execute(SAVE, values![cluster, name, sealed]).await;
    written.map(drop).map_err(|error| refused(error, name, &cluster, of_cluster(cluster)))
}

/// Writes a secret unless there is one; the one that is there then.
pub(crate) async fn keep(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
    sealed: &str,
) -> Result<String, StoreError> {
    const KEEP: &str = "INSERT INTO secrets (cluster, name, sealed) VALUES ($1, $2, $3) ON CONFLICT (cluster, name) DO NOTHING";
    let written = connection.execute(KEEP, values![cluster, name, sealed]).await;
    written.map_err(|error| refused(error, name, &cluster, of_cluster(cluster)))?;
    Ok(find(connection, cluster, name).await?.unwrap_or_else(|| sealed.to_owned()))
}

/// Deletes a secret, if there is one.
pub(crate) async fn delete(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
) -> Result<(), StoreError> {
    const DELETE: &str = "DELETE FROM secrets WHERE cluster = $1 AND name = $2";
    connection.execute(DELETE, values![cluster, name]).await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut Connection,
    cluster: ClusterUuid,
    name: &str,
) -> Result<Option<String>, StoreError> {
    const FIND: &str = "SELECT sealed FROM secrets WHERE cluster = $1 AND name = $2";
    let row = connection.row(FIND, values![cluster, name]).await?;
    Ok(row.map(|row| row.text(0).map(str::to_owned)).transpose()?)
}
