//! The table `machines`: the current claim and the last report of each member.

use cluster_core::{ClaimUuid, ClusterUuid, LedgerUuid};
use database::{Connection, Result, Row, values};
use jiff::Timestamp;

use super::claim::address;
use crate::{BootstrapReport, Claim, MachineReport};

const TABLE: &str = "machines";

/// Records that a member was given this claim, and deletes its former report.
pub(crate) async fn insert_claim(connection: &mut Connection, of: &Claim) -> Result<()> {
    const EXPECT: &str = "INSERT INTO machines (cluster, machine, claim, failed, message) VALUES ($1, $2, $3, 0, '') \
         ON CONFLICT (cluster, machine) DO UPDATE SET claim = $3, step = NULL, failed = 0, message = '', at = NULL, authorities = NULL";
    let values = values![of.cluster, of.machine.to_string(), of.id];
    connection.execute(EXPECT, values).await?;
    Ok(())
}

/// Records a report of the member that redeemed `claim`, unless it sent the same one after `since`. Returns its cluster if the report was
/// recorded.
pub(crate) async fn note(
    connection: &mut Connection,
    claim: ClaimUuid,
    said: &BootstrapReport,
    since: Timestamp,
) -> Result<Option<ClusterUuid>> {
    const NOTE: &str = "UPDATE machines SET step = $2, failed = $3, message = $4, at = $5 WHERE claim = $1 \
         AND (at IS NULL OR at <= $6 OR step <> $2 OR failed <> $3 OR message <> $4) RETURNING cluster";
    let (step, message) = (said.step.as_str(), said.message.as_str());
    let values = values![claim, step, said.failed, message, said.at, since];
    let row = connection.row(NOTE, values).await?;
    row.map(|row| row.parse(TABLE, 0)).transpose()
}

/// Records the CA revision that the member that redeemed `claim` holds. Returns its cluster if the revision is new.
pub(crate) async fn note_authorities(
    connection: &mut Connection,
    claim: ClaimUuid,
    revision: u32,
) -> Result<Option<ClusterUuid>> {
    const HOLD: &str = "UPDATE machines SET authorities = $2 WHERE claim = $1 \
         AND (authorities IS NULL OR authorities <> $2) RETURNING cluster";
    let row = connection.row(HOLD, values![claim, i64::from(revision)]).await?;
    row.map(|row| row.parse(TABLE, 0)).transpose()
}

/// Returns the members of a cluster that were given claims, sorted by name.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: ClusterUuid,
) -> Result<Vec<MachineReport>> {
    const OF: &str = "SELECT m.machine, m.claim, c.redeemed_at, c.redeemed_by, m.step, m.failed, m.message, m.at, m.authorities \
         FROM machines m JOIN claims c ON c.id = m.claim WHERE m.cluster = $1 ORDER BY m.machine";
    connection.rows(OF, values![cluster]).await?.iter().map(read).collect()
}

/// Deletes the member whose server this ledger entry is, with its claims.
pub(crate) async fn forget(connection: &mut Connection, line: LedgerUuid) -> Result<()> {
    // The row of the member is deleted with its claim.
    const FORGET: &str = "DELETE FROM claims WHERE EXISTS (SELECT 1 FROM ledger \
         WHERE ledger.id = $1 AND ledger.cluster = claims.cluster AND ledger.kind = 'server/' || claims.machine)";
    connection.execute(FORGET, values![line]).await?;
    Ok(())
}

fn read(row: &Row) -> Result<MachineReport> {
    let said = match (row.optional_text(4)?, row.optional_time(TABLE, 7)?) {
        (Some(step), Some(at)) => Some(BootstrapReport {
            step: step.to_owned(),
            failed: row.int(5)? != 0,
            message: row.text(6)?.to_owned(),
            at,
        }),
        (_, _) => None,
    };
    Ok(MachineReport {
        machine: row.parse(TABLE, 0)?,
        claim: row.parse(TABLE, 1)?,
        redeemed_at: row.optional_time(TABLE, 2)?,
        redeemed_by: address(row, 3)?,
        said,
        authorities: row.optional_int(8)?.and_then(|revision| u32::try_from(revision).ok()),
    })
}
