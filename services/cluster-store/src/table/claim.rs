//! The table `claims`.

use std::net::IpAddr;

use cluster_core::{ClaimUuid, ClusterUuid, MemberName};
use database::{Connection, Result, Row, values};
use jiff::Timestamp;

use super::{of_cluster, refused};
use crate::{Claim, RedeemOutcome};

const TABLE: &str = "claims";
/// How often a config is handed out again because the answer was lost.
const REPEATS: u32 = 4;

pub(crate) async fn insert(connection: &mut Connection, claim: &Claim) -> Result<()> {
    const INSERT: &str = "INSERT INTO claims (id, cluster, machine, digest, facts, expires_at, redeemed_at, redeemed_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values = values![
        claim.id,
        claim.cluster,
        claim.machine.to_string(),
        claim.digest.as_str(),
        claim.facts.as_str(),
        claim.expires_at,
        claim.redeemed_at,
        claim.redeemed_by.map(|address| address.to_string()),
    ];
    let written = connection.execute(INSERT, values).await;
    written.map(drop).map_err(|error| refused(error, "", &claim.id, of_cluster(claim.cluster)))
}

/// Updates a claim that nobody has redeemed. Returns false when it was redeemed.
pub(crate) async fn renew(
    connection: &mut Connection,
    claim: ClaimUuid,
    facts: &str,
    expires_at: Timestamp,
) -> Result<bool> {
    const RENEW: &str =
        "UPDATE claims SET facts = $2, expires_at = $3 WHERE id = $1 AND redeemed_at IS NULL";
    Ok(connection.execute(RENEW, values![claim, facts, expires_at]).await? == 1)
}

pub(crate) async fn find(connection: &mut Connection, claim: ClaimUuid) -> Result<Option<Claim>> {
    const FIND: &str = "SELECT id, cluster, machine, digest, facts, expires_at, redeemed_at, redeemed_by FROM claims \
         WHERE id = $1";
    connection.row(FIND, values![claim]).await?.as_ref().map(read).transpose()
}

/// Returns the current claim of a member.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: ClusterUuid,
    machine: &MemberName,
) -> Result<Option<Claim>> {
    const OF: &str = "SELECT id, cluster, machine, digest, facts, expires_at, redeemed_at, redeemed_by FROM claims \
         WHERE id = (SELECT claim FROM machines WHERE cluster = $1 AND machine = $2)";
    let row = connection.row(OF, values![cluster, machine.to_string()]).await?;
    row.as_ref().map(read).transpose()
}

/// Redeems a claim, if possible. The same address may redeem again [`REPEATS`] times if the first time was after `since` and the member has
/// not reported yet.
pub(crate) async fn redeem(
    connection: &mut Connection,
    claim: ClaimUuid,
    by: IpAddr,
    now: Timestamp,
    since: Timestamp,
    reports_by: &str,
) -> Result<RedeemOutcome> {
    const REDEEM: &str = "UPDATE claims SET redeemed_at = $2, redeemed_by = $3, reports_by = $4 WHERE id = $1 AND redeemed_at IS NULL AND expires_at > $2";
    const AGAIN: &str = "UPDATE claims SET reports_by = $4, repeats = repeats + 1 WHERE id = $1 AND redeemed_by = $2 AND redeemed_at > $3 \
         AND repeats < $5 AND EXISTS (SELECT 1 FROM machines WHERE claim = $1 AND at IS NULL)";
    let by = by.to_string();
    if connection.execute(REDEEM, values![claim, now, by.as_str(), reports_by]).await? == 1 {
        return Ok(RedeemOutcome::First);
    }
    const USED_UP: &str =
        "SELECT repeats FROM claims WHERE id = $1 AND redeemed_by = $2 AND repeats >= $3";
    let values = values![claim, by.as_str(), since, reports_by, REPEATS];
    if connection.execute(AGAIN, values).await? == 1 {
        return Ok(RedeemOutcome::Again);
    }
    let used_up = connection.row(USED_UP, values![claim, by, REPEATS]).await?;
    Ok(if used_up.is_some() { RedeemOutcome::TooOften } else { RedeemOutcome::No })
}

fn read(row: &Row) -> Result<Claim> {
    Ok(Claim {
        id: row.parse(TABLE, 0)?,
        cluster: row.parse(TABLE, 1)?,
        machine: row.parse(TABLE, 2)?,
        digest: row.text(3)?.to_owned(),
        facts: row.text(4)?.to_owned(),
        expires_at: row.time(TABLE, 5)?,
        redeemed_at: row.optional_time(TABLE, 6)?,
        redeemed_by: address(row, 7)?,
    })
}

/// Reads an optional address.
pub(super) fn address(row: &Row, column: usize) -> Result<Option<IpAddr>> {
    match row.optional_text(column)? {
        None => Ok(None),
        Some(_) => row.parse(TABLE, column).map(Some),
    }
}
