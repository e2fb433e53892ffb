//! The secrets that each key of the table `seals` seals, and the report tokens that derive from each.

use database::{Connection, Result, Row, values};

/// Returns each key with the number of secrets that it seals (user-data of VMs included), and the number of members whose report
/// token derives from it.
///
/// The report key of members from before version 7 is not known, so they count for every key.
pub(crate) async fn counts(connection: &mut Connection) -> Result<Vec<(String, u64, u64)>> {
    const COUNTS: &str = "SELECT s.id, (SELECT count(*) FROM secrets WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM vms WHERE sealed_by = s.id), \
         (SELECT count(*) FROM machines m JOIN claims c ON c.id = m.claim \
         WHERE c.redeemed_at IS NOT NULL AND (c.reports_by = s.id OR c.reports_by IS NULL)) \
         FROM seals s ORDER BY s.id";
    let rows = connection.rows(COUNTS, values![]).await?;
    let read = |row: &Row| {
        let (secrets, reports) = (row.int(1)?.unsigned_abs(), row.int(2)?.unsigned_abs());
        Ok((row.text(0)?.to_owned(), secrets, reports))
    };
    rows.iter().map(read).collect()
}

/// Records this key for members whose report key is unknown. Returns how many there were.
pub(crate) async fn assume(connection: &mut Connection, id: &str) -> Result<u64> {
    const ASSUME: &str =
        "UPDATE claims SET reports_by = $1 WHERE reports_by IS NULL AND redeemed_at IS NOT NULL";
    Ok(connection.execute(ASSUME, values![id]).await?)
}
