//! The table `seals`, which both services have: the keys with which records may be sealed.

use std::collections::BTreeMap;

use crate::WriteKind::OnlyFirstStatementCanFail;
use crate::table::is_missing_owner;
use crate::{Connection, Database, StoreError, values, writing};

/// Writes the canaries of these keys, replacing earlier ones.
pub async fn save_canaries(
    database: &Database,
    canaries: Vec<(String, String)>,
) -> Result<(), StoreError> {
    if canaries.is_empty() {
        return Ok(());
    }
    writing!(database, OnlyFirstStatementCanFail, |c| {
        for (id, canary) in &canaries {
            save_canary(c, id, canary).await?;
        }
        Ok(())
    })
}

/// Allows records to be sealed with this key. The canary is stored if it was missing; it distinguishes the key from another key with the same
/// id.
pub async fn allow_key(
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
async fn save_canary(
    connection: &mut Connection,
    id: &str,
    canary: &str,
) -> Result<(), StoreError> {
    const SAVE: &str = "UPDATE seals SET canary = $2 WHERE id = $1";
    connection.execute(SAVE, values![id, canary]).await?;
    Ok(())
}

/// Returns the canaries of all keys that have one.
pub async fn canaries(connection: &mut Connection) -> Result<BTreeMap<String, String>, StoreError> {
    const CANARIES: &str = "SELECT id, canary FROM seals WHERE canary IS NOT NULL";
    let rows = connection.rows(CANARIES, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))).collect()
}

/// Removes a key, so that no record can be sealed with it. Fails with `InUse` while the key seals a record.
pub async fn remove_key(connection: &mut Connection, id: &str) -> Result<(), StoreError> {
    match connection.execute("DELETE FROM seals WHERE id = $1", values![id]).await {
        Err(error) if is_missing_owner(&error) => {
            Err(StoreError::InUse { by: "records sealed with it" })
        }
        done => Ok(done.map(drop)?),
    }
}
