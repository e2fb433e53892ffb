//! The table `seals`: the keys that something may be sealed by, or report by.

use std::collections::BTreeMap;

use database::table::is_orphan;
use database::{Connection, Row, StoreError, values};

/// Something may be sealed by this key. What tells it from another is written with it, where it is known.
pub(crate) async fn know(
    connection: &mut Connection,
    id: &str,
    canary: Option<&str>,
) -> Result<(), StoreError> {
    const KNOW: &str = "INSERT INTO seals (id, canary) VALUES ($1, $2) \
         ON CONFLICT (id) DO UPDATE SET canary = excluded.canary WHERE seals.canary IS NULL";
    connection.execute(KNOW, values![id, canary]).await?;
    Ok(())
}

/// Writes what tells this key from another, in place of what was there.
pub(crate) async fn save_canary(
    connection: &mut Connection,
    id: &str,
    canary: &str,
) -> Result<(), StoreError> {
    const SAVE: &str = "UPDATE seals SET canary = $2 WHERE id = $1";
    connection.execute(SAVE, values![id, canary]).await?;
    Ok(())
}

/// What tells each key from another, where that is known.
pub(crate) async fn canaries(
    connection: &mut Connection,
) -> Result<BTreeMap<String, String>, StoreError> {
    const CANARIES: &str = "SELECT id, canary FROM seals WHERE canary IS NOT NULL";
    let rows = connection.rows(CANARIES, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))).collect()
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
