//! The table `seals`: the keys with which rows may be sealed.

use std::collections::BTreeMap;

use database::table::is_missing_owner;
use database::{Connection, StoreError, values};

use crate::secrets::NO_SECRETS;

/// Allows rows to be sealed with this key. The canary is stored if it was missing; it distinguishes the key from another key with the same
/// id.
pub(crate) async fn allow_key(
    connection: &mut Connection,
    id: &str,
    canary: Option<&str>,
) -> Result<(), StoreError> {
    const KNOW: &str = "INSERT INTO seals (id, canary) VALUES ($1, $2) \
         ON CONFLICT (id) DO UPDATE SET canary = excluded.canary WHERE seals.canary IS NULL";
    connection.execute(KNOW, values![id, canary]).await?;
    Ok(())
}

/// Writes the canary of this key, replacing an earlier one.
pub(crate) async fn save_canary(
    connection: &mut Connection,
    id: &str,
    canary: &str,
) -> Result<(), StoreError> {
    const SAVE: &str = "UPDATE seals SET canary = $2 WHERE id = $1";
    connection.execute(SAVE, values![id, canary]).await?;
    Ok(())
}

/// Returns the canaries of all keys that have one.
pub(crate) async fn canaries(
    connection: &mut Connection,
) -> Result<BTreeMap<String, String>, StoreError> {
    const CANARIES: &str = "SELECT id, canary FROM seals WHERE canary IS NOT NULL";
    let rows = connection.rows(CANARIES, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))).collect()
}

/// Removes a key, so that no row can be sealed with it. Fails with `InUse` while the key seals a row.
pub(crate) async fn remove_key(connection: &mut Connection, id: &str) -> Result<(), StoreError> {
    match connection.execute("DELETE FROM seals WHERE id = $1", values![id]).await {
        Err(error) if is_missing_owner(&error) => {
            Err(StoreError::InUse { by: "records sealed with it" })
        }
        done => Ok(done.map(drop)?),
    }
}

/// Returns the keys, each with the number of rows that it seals.
pub(crate) async fn counts(connection: &mut Connection) -> Result<Vec<(String, u64)>, StoreError> {
    const COUNTS: &str = "SELECT s.id, (SELECT count(*) FROM nodes WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM racks WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM hypervisor_profiles WHERE sealed_by = s.id) FROM seals s WHERE s.id <> $1 ORDER BY s.id";
    let rows = connection.rows(COUNTS, values![NO_SECRETS]).await?;
    let read = |row: &database::Row| Ok((row.text(0)?.to_owned(), row.int(1)?.unsigned_abs()));
    rows.iter().map(read).collect()
}
