//! The table `ledger`: what each cluster owns in the cloud.

use cluster_core::{ClusterUuid, LedgerEntry, LedgerState, LedgerUuid};
use database::{Connection, Row, StoreError, values};

use super::{of_cluster, refused};

const TABLE: &str = "ledger";

/// Writes an entry, or what is known anew of the one of this kind and name.
pub(crate) async fn save(
    connection: &mut Connection,
    entry: &LedgerEntry,
) -> Result<(), StoreError> {
    const SAVE: &str = "INSERT INTO ledger (id, cluster, kind, name, cloud_id, state, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (cluster, kind, name) DO UPDATE SET cloud_id = $5, state = $6, updated_at = $8";
    let values = values![
        entry.id,
        entry.cluster,
        entry.kind.as_str(),
        entry.name.as_str(),
        entry.cloud_id.as_deref(),
        entry.state.as_str(),
        entry.created_at,
        entry.updated_at,
    ];
    let written = connection.execute(SAVE, values).await;
    written
        .map(drop)
        .map_err(|error| refused(error, &entry.name, &entry.id, of_cluster(entry.cluster)))
}

/// Strikes an entry out, if it is there.
pub(crate) async fn strike(
    connection: &mut Connection,
    entry: LedgerUuid,
) -> Result<(), StoreError> {
    connection.execute("DELETE FROM ledger WHERE id = $1", values![entry]).await?;
    Ok(())
}

/// All of `cluster`, in the order they were written.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: ClusterUuid,
) -> Result<Vec<LedgerEntry>, StoreError> {
    const OF: &str = "SELECT id, cluster, kind, name, cloud_id, state, created_at, updated_at FROM ledger \
         WHERE cluster = $1 ORDER BY created_at, kind, name";
    connection.rows(OF, values![cluster]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<LedgerEntry, StoreError> {
    let state = row.text(5)?;
    let state = LedgerState::read(state).ok_or_else(|| {
        StoreError::corrupt(TABLE, row.text(0).unwrap_or_default(), "its state is none")
    })?;
    Ok(LedgerEntry {
        id: row.parse(TABLE, 0)?,
        cluster: row.parse(TABLE, 1)?,
        kind: row.text(2)?.to_owned(),
        name: row.text(3)?.to_owned(),
        cloud_id: row.optional_text(4)?.map(str::to_owned),
        state,
        created_at: row.time(TABLE, 6)?,
        updated_at: row.optional_time(TABLE, 7)?,
    })
}
