//! The tables `ledger` and `vm_ledger`: the cloud objects that each cluster and each VM owns.

use std::collections::BTreeMap;

use cluster_core::{
    ClusterUuid, Key, LedgerEntry, LedgerOwner, LedgerState, LedgerUuid, Member, MemberName,
    OwnServer,
};
use database::table::{PagePart, PageRows};
use database::{AssertSqlSafe, Connection, Query, Result, Row, StoreError, Value, values};
use jiff::Timestamp;

use super::{of_cluster, of_vm, refused};

/// Returns the table of the owner's entries, the column of the owner, and its id.
fn place(of: LedgerOwner) -> (&'static str, &'static str, Value) {
    match of {
        LedgerOwner::Cluster(cluster) => ("ledger", "cluster", cluster.into()),
        LedgerOwner::Vm(vm) => ("vm_ledger", "vm", vm.into()),
    }
}

/// Writes an entry. When one of this kind and name exists, its id in the cloud and its state are replaced.
pub(crate) async fn save(connection: &mut Connection, entry: &LedgerEntry) -> Result<()> {
    let (table, column, of) = place(entry.of);
    let sql = format!(
        "INSERT INTO {table} (id, {column}, kind, name, cloud_id, state, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT ({column}, kind, name) DO UPDATE SET cloud_id = $5, state = $6, updated_at = $8"
    );
    let values = values![
        entry.id,
        of,
        entry.kind.as_str(),
        entry.name.as_str(),
        entry.cloud_id.as_deref(),
        entry.state.as_str(),
        entry.created_at,
        entry.updated_at,
    ];
    let owner = match entry.of {
        LedgerOwner::Cluster(cluster) => of_cluster(cluster),
        LedgerOwner::Vm(vm) => of_vm(vm),
    };
    let written = connection.execute(AssertSqlSafe(sql), values).await;
    written.map(drop).map_err(|error| refused(error, &entry.name, &entry.id, owner))
}

/// Deletes an entry, if it exists.
pub(crate) async fn strike(connection: &mut Connection, entry: LedgerUuid) -> Result<()> {
    connection.execute("DELETE FROM ledger WHERE id = $1", values![entry]).await?;
    connection.execute("DELETE FROM vm_ledger WHERE id = $1", values![entry]).await?;
    Ok(())
}

pub(crate) async fn forget(connection: &mut Connection, of: ClusterUuid) -> Result<()> {
    connection.execute("DELETE FROM ledger WHERE cluster = $1", values![of]).await?;
    Ok(())
}

/// Returns all entries of `holder`, oldest first.
pub(crate) async fn of(
    connection: &mut Connection,
    holder: LedgerOwner,
) -> Result<Vec<LedgerEntry>> {
    let (table, column, id) = place(holder);
    let sql = format!(
        "SELECT id, kind, name, cloud_id, state, created_at, updated_at FROM {table} \
         WHERE {column} = $1 ORDER BY created_at, kind, name"
    );
    let rows = connection.rows(AssertSqlSafe(sql), values![id]).await?;
    rows.iter().map(|row| read(row, holder)).collect()
}

/// The entry after which a list continues: when it was made, its kind and its name.
pub type LedgerPosition = (Timestamp, String, String);

/// Returns a part of the entries of `holder`, oldest first.
pub(crate) async fn part_of(
    connection: &mut Connection,
    holder: LedgerOwner,
    limit: u32,
    part: PagePart<LedgerPosition>,
) -> Result<PageRows<LedgerEntry, LedgerPosition>> {
    let (table, column, id) = place(holder);
    let sql = format!(
        "SELECT id, kind, name, cloud_id, state, created_at, updated_at FROM {table} \
         WHERE {column} = $1 AND (created_at, kind, name) > ($3, $4, $5) ORDER BY created_at, kind, name LIMIT $2"
    );
    // No entry was made earlier.
    let (at, kind, name) = part.after.unwrap_or((Timestamp::MIN, String::new(), String::new()));
    let values = values![id, limit, at, kind.as_str(), name.as_str()];
    let rows = connection.rows(AssertSqlSafe(sql), values).await?;
    let found: Vec<LedgerEntry> =
        rows.iter().map(|row| read(row, holder)).collect::<Result<_>>()?;
    let last = found.last().filter(|_| found.len() >= limit as usize);
    let more = last.map(|it| (it.created_at, it.kind.clone(), it.name.clone()));
    Ok(PageRows { found, more })
}

/// Returns the cluster member or VM of each server with one of these ids in the cloud. Servers of other owners are missing.
pub(crate) async fn servers(
    connection: &mut Connection,
    ids: &[String],
) -> Result<BTreeMap<String, OwnServer>> {
    let mut found = BTreeMap::new();
    if ids.is_empty() {
        return Ok(found);
    }
    let of = |select: &str| {
        let mut query = Query::new(select);
        query.and("kind LIKE 'server/%'");
        query.and_any("cloud_id", ids.iter().map(|id| id.as_str().into()));
        query
    };
    for row in of("SELECT cloud_id, cluster, kind FROM ledger").rows(connection).await? {
        if let Key::Server(machine) = row.parse("ledger", 2)? {
            let member = Member { cluster: row.parse("ledger", 1)?, machine };
            found.insert(row.text(0)?.to_owned(), OwnServer::Member(member));
        }
    }
    for row in of("SELECT cloud_id, vm FROM vm_ledger").rows(connection).await? {
        found.insert(row.text(0)?.to_owned(), OwnServer::Vm(row.parse("vm_ledger", 1)?));
    }
    Ok(found)
}

/// Returns the ids in the cloud of the servers of these members of a cluster. A member whose server has no id yet is missing.
pub(crate) async fn servers_of(
    connection: &mut Connection,
    cluster: ClusterUuid,
    machines: Vec<MemberName>,
) -> Result<BTreeMap<MemberName, String>> {
    let mut found = BTreeMap::new();
    if machines.is_empty() {
        return Ok(found);
    }
    let mut query = Query::new("SELECT kind, cloud_id FROM ledger");
    query.and_value("cluster = ?", cluster);
    let kinds = machines.into_iter().map(|machine| Key::Server(machine).to_string());
    query.and_any("kind", kinds.map(|kind| kind.as_str().into()));
    for row in query.rows(connection).await? {
        if let (Key::Server(machine), Some(id)) = (row.parse("ledger", 0)?, row.optional_text(1)?) {
            found.insert(machine, id.to_owned());
        }
    }
    Ok(found)
}

fn read(row: &Row, of: LedgerOwner) -> Result<LedgerEntry> {
    let (table, ..) = place(of);
    let state = row.text(4)?;
    let state = LedgerState::find(state).ok_or_else(|| {
        StoreError::corrupt(table, row.text(0).unwrap_or_default(), "unknown state")
    })?;
    Ok(LedgerEntry {
        id: row.parse(table, 0)?,
        of,
        kind: row.text(1)?.to_owned(),
        name: row.text(2)?.to_owned(),
        cloud_id: row.optional_text(3)?.map(str::to_owned),
        state,
        created_at: row.time(table, 5)?,
        updated_at: row.optional_time(table, 6)?,
    })
}
