//! The table `subdomains`: the DNS subdomain of each cluster. No two clusters share one, whatever their projects.

use cluster_core::{Cluster, subdomain};
use database::table::violated_unique_column;
use database::{Connection, Result, Row, StoreError, values};

/// Records the subdomain of a new cluster, if it has one.
pub(crate) async fn insert(connection: &mut Connection, cluster: &Cluster) -> Result<()> {
    const TAKE: &str = "INSERT INTO subdomains (name, cluster) VALUES ($1, $2)";
    let Some(name) = subdomain(cluster) else { return Ok(()) };
    match connection.execute(TAKE, values![name.as_str(), cluster.id]).await {
        Err(error) if violated_unique_column(&error).is_some() => {
            Err(StoreError::Duplicate { field: "labels.dns_zone", value: name })
        }
        written => Ok(written.map(drop)?),
    }
}

/// Records the subdomains of clusters that are older than the table. When two share one, the first gets it.
pub(crate) async fn insert_missing(connection: &mut Connection) -> Result<()> {
    const LACKING: &str = "SELECT id, document FROM clusters WHERE document LIKE '%\"dns_zone\"%' \
         AND NOT EXISTS (SELECT 1 FROM subdomains WHERE subdomains.cluster = clusters.id) ORDER BY id";
    const TAKE: &str =
        "INSERT INTO subdomains (name, cluster) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let read = |row: &Row| row.json::<Cluster>("clusters", 1);
    let lacking = connection.rows(LACKING, values![]).await?;
    for cluster in lacking.iter().map(read) {
        let cluster = cluster?;
        if let Some(name) = subdomain(&cluster) {
            connection.execute(TAKE, values![name, cluster.id]).await?;
        }
    }
    Ok(())
}
