//! The table `claims`.

use database::{Connection, StoreError, values};
use jiff::Timestamp;

use super::{of_cluster, refused};
use crate::Claim;

const TABLE: &str = "claims";

pub(crate) async fn insert(connection: &mut Connection, claim: &Claim) -> Result<(), StoreError> {
    const INSERT: &str = "INSERT INTO claims (id, cluster, machine, digest, expires_at, redeemed_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![
        claim.id,
        claim.cluster,
        claim.machine.to_string(),
        claim.digest.as_str(),
        claim.expires_at,
        claim.redeemed_at,
    ];
    let written = connection.execute(INSERT, values).await;
    written.map(drop).map_err(|error| refused(error, "", &claim.id, of_cluster(claim.cluster)))
}

pub(crate) async fn find(
    connection: &mut Connection,
    digest: &str,
) -> Result<Option<Claim>, StoreError> {
    const FIND: &str = "SELECT id, cluster, machine, digest, expires_at, redeemed_at FROM claims WHERE digest = $1";
    let Some(row) = connection.row(FIND, values![digest]).await? else { return Ok(None) };
    Ok(Some(Claim {
        id: row.parse(TABLE, 0)?,
        cluster: row.parse(TABLE, 1)?,
        machine: row.parse(TABLE, 2)?,
        digest: row.text(3)?.to_owned(),
        expires_at: row.time(TABLE, 4)?,
        redeemed_at: row.optional_time(TABLE, 5)?,
    }))
}

/// Redeems the claim of this digest, if it can still be.
pub(crate) async fn redeem(
    connection: &mut Connection,
    digest: &str,
    now: Timestamp,
) -> Result<Option<Claim>, StoreError> {
    const REDEEM: &str = "UPDATE claims SET redeemed_at = $2 WHERE digest = $1 AND redeemed_at IS NULL AND expires_at > $2";
    match connection.execute(REDEEM, values![digest, now]).await? {
        0 => Ok(None),
        _ => find(connection, digest).await,
    }
}
