//! The table `seals`: the keys with which secrets may be sealed, or from which report tokens may derive.

use std::collections::BTreeMap;

use database::table::is_missing_owner;
use database::{Connection, Row, StoreError, values};

/// Registers a key, with its canary if that is known.
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

/// Replaces the canary of a key.
pub(crate) async fn save_canary(
    connection: &mut Connection,
    id: &str,
    canary: &str,
) -> Result<(), StoreError> {
    const SAVE: &str = "UPDATE seals SET canary = $2 WHERE id = $1";
    connection.execute(SAVE, values![id, canary]).await?;
    Ok(())
}

/// Returns the canary of each key that has one.
pub(crate) async fn canaries(
    connection: &mut Connection,
) -> Result<BTreeMap<String, String>, StoreError> {
    const CANARIES: &str = "SELECT id, canary FROM seals WHERE canary IS NOT NULL";
    let rows = connection.rows(CANARIES, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))).collect()
}

/// Removes a key. `InUse` while a secret is sealed with it.
pub(crate) async fn forget(connection: &mut Connection, id: &str) -> Result<(), StoreError> {
    match connection.execute("DELETE FROM seals WHERE id = $1", values![id]).await {
        Err(error) if is_missing_owner(&error) => {
            Err(StoreError::InUse { by: "secrets that it seals" })
        }
        done => Ok(done.map(drop)?),
    }
}

/// Returns each key with the number of secrets that it seals (user-data of VMs included), and the number of members whose report
/// token derives from it.
///
/// The report key of members from before version 7 is not known, so they count for every key.
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

/// Records this key for members whose report key is unknown. Returns how many there were.
pub(crate) async fn assume(connection: &mut Connection, id: &str) -> Result<u64, StoreError> {
    const ASSUME: &str =
        "UPDATE claims SET reports_by = $1 WHERE reports_by IS NULL AND redeemed_at IS NOT NULL";
    Ok(connection.execute(ASSUME, values![id]).await?)
}
