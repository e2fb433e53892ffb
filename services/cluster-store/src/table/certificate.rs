//! The table `certificates`: certificates signed by certificate authorities of clusters.

use cluster_core::ClusterUuid;
use database::{Connection, Result, Row, values};

use super::{of_cluster, refused};
use crate::Certificate;

const TABLE: &str = "certificates";

pub(crate) async fn insert(connection: &mut Connection, certificate: &Certificate) -> Result<()> {
    const INSERT: &str = "INSERT INTO certificates (id, cluster, subject, issued_to, created_at, not_after) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![
        certificate.id,
        certificate.cluster,
        certificate.subject.as_str(),
        certificate.issued_to.as_str(),
        certificate.created_at,
        certificate.not_after,
    ];
    let written = connection.execute(INSERT, values).await;
    let owner = of_cluster(certificate.cluster);
    written.map(drop).map_err(|error| refused(error, "", &certificate.id, owner))
}

/// Returns the certificates of `cluster`, oldest first.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: ClusterUuid,
) -> Result<Vec<Certificate>> {
    const OF: &str = "SELECT id, cluster, subject, issued_to, created_at, not_after FROM certificates \
         WHERE cluster = $1 ORDER BY created_at, id";
    connection.rows(OF, values![cluster]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Certificate> {
    Ok(Certificate {
        id: row.parse(TABLE, 0)?,
        cluster: row.parse(TABLE, 1)?,
        subject: row.text(2)?.to_owned(),
        issued_to: row.text(3)?.to_owned(),
        created_at: row.time(TABLE, 4)?,
        not_after: row.time(TABLE, 5)?,
    })
}
