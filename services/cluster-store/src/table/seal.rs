//! The table `seals`: the keys that something may be sealed by, or report by.

use database::table::is_orphan;
use database::{Connection, Row, StoreError, values};

/// Something may be sealed by this key.
pub(crate) async fn know(connection: &mut Connection, id: &str) -> Result<(), StoreError> {
    const KNOW: &str = "INSERT INTO seals (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    connection.execute(KNOW, values![id]).await?;
    Ok(())
}

/// Nothing may be sealed by this key any more; `InUse` while something is.
pub(crate) async fn forget(connection: &mut Connection, id: &str) -> Result<(), StoreError> {
    match connection.execute("DELETE FROM seals WHERE id = $1", values![id]).await {
        Err(error) if is_orphan(&error) => Err(StoreError::InUse { by: "what it seals" }),
        done => Ok(done.map(drop)?),
    }
}

/// The keys, how many secrets (of clusters and of machines that are not built yet) each seals, and how many machines report by it. By which key a machine reports whose config is older
/// than version 7 is not known: it counts for each.
pub(crate) async fn counts(
    connection: &mut Connection,
) -> Result<Vec<(String, u64, u64)>, StoreError> {
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

/// Machines of whom it is not known report by this key: there never was another.
pub(crate) async fn assume(connection: &mut Connection, id: &str) -> Result<u64, StoreError> {
    const ASSUME: &str =
        "UPDATE claims SET reports_by = $1 WHERE reports_by IS NULL AND redeemed_at IS NOT NULL";
    Ok(connection.execute(ASSUME, values![id]).await?)
}
