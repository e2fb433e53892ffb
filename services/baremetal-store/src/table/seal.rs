//! The table `seals`: the keys that something may be sealed by.

use database::table::is_orphan;
use database::{Connection, StoreError, values};

use crate::secrets::NOTHING;

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

/// The keys, and how many rows each seals.
pub(crate) async fn counts(connection: &mut Connection) -> Result<Vec<(String, u64)>, StoreError> {
    const COUNTS: &str = "SELECT s.id, (SELECT count(*) FROM nodes WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM racks WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM hypervisor_profiles WHERE sealed_by = s.id) FROM seals s WHERE s.id <> $1 ORDER BY s.id";
    let rows = connection.rows(COUNTS, values![NOTHING]).await?;
    let read = |row: &database::Row| Ok((row.text(0)?.to_owned(), row.int(1)?.unsigned_abs()));
    rows.iter().map(read).collect()
}
