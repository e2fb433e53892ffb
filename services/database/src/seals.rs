//! The table `seals`, which both services have: the keys with which records may be sealed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::WriteKind::{OneStatement, OnlyFirstStatementCanFail};
use crate::table::is_missing_owner;
use crate::{Connection, Database, Result, StoreError, values, writing};

/// The keys that are known to be in the table, so that each key is registered once. Clones share this knowledge.
#[derive(Clone, Default)]
pub struct RegisteredKeys(Arc<Mutex<BTreeSet<String>>>);

impl RegisteredKeys {
    /// Registers a key before the key seals anything: the database refuses records that name an unknown key.
    pub async fn register(
        &self,
        database: &Database,
        id: &str,
        canary: impl FnOnce() -> Option<String>,
    ) -> Result<()> {
        if self.ids().contains(id) {
            return Ok(());
        }
        let (key, canary) = (id.to_owned(), canary());
        writing!(database, OneStatement, |c| allow_key(c, &key, canary.as_deref()).await)?;
        self.ids().insert(id.to_owned());
        Ok(())
    }

    /// Removes a key, so that the database refuses records sealed with the key. Fails with `InUse` while the key seals a record.
    pub async fn remove(&self, database: &Database, id: &str) -> Result<()> {
        self.ids().remove(id);
        let id = id.to_owned();
        writing!(database, OneStatement, |c| remove_key(c, &id).await)
    }

    fn ids(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the canaries of these keys, replacing earlier ones.
pub async fn save_canaries(database: &Database, canaries: Vec<(String, String)>) -> Result<()> {
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
async fn allow_key(connection: &mut Connection, id: &str, canary: Option<&str>) -> Result<()> {
    const KNOW: &str = "INSERT INTO seals (id, canary) VALUES ($1, $2) \
         ON CONFLICT (id) DO UPDATE SET canary = excluded.canary WHERE seals.canary IS NULL";
    connection.execute(KNOW, values![id, canary]).await?;
    Ok(())
}

/// Writes the canary of this key, replacing an earlier one.
async fn save_canary(connection: &mut Connection, id: &str, canary: &str) -> Result<()> {
    const SAVE: &str = "UPDATE seals SET canary = $2 WHERE id = $1";
    connection.execute(SAVE, values![id, canary]).await?;
    Ok(())
}

/// Returns the canaries of all keys that have one.
pub async fn canaries(connection: &mut Connection) -> Result<BTreeMap<String, String>> {
    const CANARIES: &str = "SELECT id, canary FROM seals WHERE canary IS NOT NULL";
    let rows = connection.rows(CANARIES, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))).collect()
}

async fn remove_key(connection: &mut Connection, id: &str) -> Result<()> {
    match connection.execute("DELETE FROM seals WHERE id = $1", values![id]).await {
        Err(error) if is_missing_owner(&error) => {
            Err(StoreError::InUse { by: "records sealed with it" })
        }
        done => Ok(done.map(drop)?),
    }
}
