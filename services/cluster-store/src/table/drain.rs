//! The tables `drains` and `drain_takes`: drains of hosts, and the members that each takes out.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{ClusterUuid, Drain, DrainUuid, HostName, Member, MemberName};
use database::documents::{self, known_part};
use database::table::changed_one;
use database::{Column, Connection, Query, Result, Row, StoreError, columns, program, values};

const TABLE: &str = "drains";
const TAKES: &str = "drain_takes";

pub(crate) async fn insert(connection: &mut Connection, drain: &Drain) -> Result<()> {
    let mut columns = columns(drain)?;
    columns.extend(columns![id: drain.id]);
    columns::insert(connection, TABLE, columns).await?;
    take(connection, drain, &BTreeSet::new()).await
}

/// Writes a drain, if its version is still the one that was read. `before` are the members it took out then.
pub(crate) async fn update(
    connection: &mut Connection,
    drain: &Drain,
    before: &BTreeSet<Member>,
) -> Result<Drain> {
    let (columns, known) = (|| columns(drain), known_part::<Drain>);
    let written = documents::update(connection, TABLE, columns, known, StoreError::from).await?;
    changed_one(written)?;
    take(connection, drain, before).await?;
    Ok(Drain { version: drain.version + 1, ..drain.clone() })
}

async fn take(connection: &mut Connection, drain: &Drain, before: &BTreeSet<Member>) -> Result<()> {
    const TAKE: &str = "INSERT INTO drain_takes (host, cluster, machine) \
         SELECT $1, id, $3 FROM clusters WHERE id = $2 ON CONFLICT DO NOTHING";
    const LEAVE: &str = "DELETE FROM drain_takes WHERE host = $1 AND cluster = $2 AND machine = $3";
    let row =
        |member: &Member| values![drain.host.as_str(), member.cluster, member.machine.to_string()];
    for member in before.difference(&drain.takes) {
        connection.execute(LEAVE, row(member)).await?;
    }
    // The statement inserts nothing for a cluster that was deleted meanwhile.
    for member in drain.takes.difference(before) {
        connection.execute(TAKE, row(member)).await?;
    }
    Ok(())
}

/// Deletes a drain with its members, if its version is still the one that was read.
pub(crate) async fn delete(connection: &mut Connection, drain: &Drain) -> Result<()> {
    const DELETE: &str = "DELETE FROM drains WHERE host = $1 AND version = $2";
    changed_one(connection.execute(DELETE, values![drain.host.as_str(), drain.version]).await?)
}

pub(crate) async fn find(connection: &mut Connection, host: &HostName) -> Result<Option<Drain>> {
    const FIND: &str = "SELECT host, version, document FROM drains WHERE host = $1";
    const OF: &str = "SELECT host, cluster, machine FROM drain_takes WHERE host = $1";
    let Some(row) = connection.row(FIND, values![host.as_str()]).await? else { return Ok(None) };
    let takes = connection.rows(OF, values![host.as_str()]).await?;
    let takes = takes.iter().map(taken).map(|it| Ok(it?.1)).collect::<Result<_>>()?;
    Ok(Some(Drain { takes, ..read(&row)? }))
}

/// Returns the host of the drain with this id.
pub(crate) async fn host_of(
    connection: &mut Connection,
    id: DrainUuid,
) -> Result<Option<HostName>> {
    let row = connection.row("SELECT host FROM drains WHERE id = $1", values![id]).await?;
    row.map(|row| row.parse(TABLE, 0)).transpose()
}

pub(crate) async fn ids(connection: &mut Connection) -> Result<Vec<DrainUuid>> {
    let rows = connection.rows("SELECT id FROM drains ORDER BY id", values![]).await?;
    rows.iter().map(|row| row.parse(TABLE, 0)).collect()
}

/// Returns all drains, sorted by host.
pub(crate) async fn all(connection: &mut Connection) -> Result<Vec<Drain>> {
    const ALL: &str = "SELECT host, version, document FROM drains ORDER BY host";
    let rows = connection.rows(ALL, values![]).await?;
    let mut takes = takes(connection, None).await?;
    let with = |row: &Row| {
        let drain = read(row)?;
        Ok(Drain { takes: takes.remove(&drain.host).unwrap_or_default(), ..drain })
    };
    rows.iter().map(with).collect()
}

/// Returns the members that each drain takes out: of these clusters, or of all.
pub(crate) async fn takes(
    connection: &mut Connection,
    of: Option<&BTreeSet<ClusterUuid>>,
) -> Result<BTreeMap<HostName, BTreeSet<Member>>> {
    let mut query = Query::new("SELECT host, cluster, machine FROM drain_takes");
    match of {
        Some(of) if of.is_empty() => return Ok(BTreeMap::new()),
        Some(of) => query.and_any("cluster", of.iter().map(|&cluster| cluster.into())),
        None => {}
    }
    let mut by_host: BTreeMap<HostName, BTreeSet<Member>> = BTreeMap::new();
    for row in query.rows(connection).await? {
        let (host, member) = taken(&row)?;
        by_host.entry(host).or_default().insert(member);
    }
    Ok(by_host)
}

/// Returns the members of a cluster that drains take out.
pub(crate) async fn of_cluster(
    connection: &mut Connection,
    cluster: ClusterUuid,
) -> Result<BTreeSet<MemberName>> {
    const OF: &str = "SELECT machine FROM drain_takes WHERE cluster = $1";
    let rows = connection.rows(OF, values![cluster]).await?;
    rows.iter().map(|row| row.parse(TAKES, 0)).collect()
}

fn taken(row: &Row) -> Result<(HostName, Member)> {
    let member = Member { cluster: row.parse(TAKES, 1)?, machine: row.parse(TAKES, 2)? };
    Ok((row.parse(TAKES, 0)?, member))
}

fn read(row: &Row) -> Result<Drain> {
    let drain: Drain = row.json(TABLE, 2)?;
    Ok(Drain { host: row.parse(TABLE, 0)?, version: row.int(1)?, ..drain })
}

fn columns(drain: &Drain) -> Result<Vec<Column>> {
    let document = serde_json::to_string(drain)
        .map_err(|error| StoreError::corrupt(TABLE, drain.host.as_str(), error))?;
    Ok(columns![
        host: drain.host.as_str(),
        version: drain.version,
        asked_at: drain.asked_at,
        document: document,
        written_by: program::NUMBER,
    ])
}
