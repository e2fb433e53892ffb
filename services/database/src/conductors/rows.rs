//! The rows of the table `conductors`.

use std::time::Duration;

use jiff::Timestamp;

use crate::{Connection, Result, Row, program, values};

/// A conductor, alive or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConductorRow {
    pub hostname: String,
    /// When the conductor was alive for the first time.
    pub created_at: Timestamp,
    pub seen_at: Timestamp,
    /// Whether its lease lasted when the row was read, by the clock of the database.
    pub is_alive: bool,
    /// Whether the conductor has ended its lease by itself.
    pub is_released: bool,
    /// The conductor groups whose resources it manages, the group of new nodes first.
    pub groups: Vec<String>,
    /// How often the host name got a lease; 0 if the conductor shares its database with no other.
    pub epoch: i64,
    /// Whether the conductor takes no work, because it is to be stopped.
    pub is_draining: bool,
    /// The fingerprint of the last list of living conductors for which it has let go of everything that belongs to others.
    pub settled: String,
    /// How many turns it still has for resources that belong to others.
    pub turns: u32,
    /// A name that only one process has at a time.
    pub instance: String,
    /// Names the key with which the process makes the tokens or certificates of machines.
    pub installation: String,
    /// The version of the program; empty if it is too old to record that.
    pub program: String,
    /// The newest schema version that the program knows; 0 if it is too old to record that.
    pub schema_known: i64,
}

/// The lease of a conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConductorLease {
    pub hostname: String,
    pub epoch: i64,
}

/// A conductor that asks for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConductor {
    pub hostname: String,
    pub groups: Vec<String>,
    pub instance: String,
    pub installation: String,
}

/// How far a conductor follows the changes of the others; the fields are those of [`ConductorRow`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConductorReport {
    pub settled: String,
    pub turns: u32,
}

const TABLE: &str = "conductors";

/// Records a sign of life of a conductor without a lease, which knows the schema version `known` and counts as alive for `lasts`.
pub(super) async fn touch(
    connection: &mut Connection,
    hostname: &str,
    groups: &[String],
    known: i64,
    (now, lasts): (Timestamp, Duration),
) -> Result<()> {
    const TOUCH: &str = "INSERT INTO conductors (hostname, seen_at, created_at, alive_until, conductor_groups, program, schema_known) \
         VALUES ($1, $2, $2, $3, $4, $5, $6) ON CONFLICT (hostname) DO UPDATE SET seen_at = $2, alive_until = $3, conductor_groups = $4, \
             program = $5, schema_known = $6";
    let until = end(now, lasts);
    let values = values![hostname, now, until, json(groups), program::VERSION, known];
    connection.execute(TOUCH, values).await?;
    Ok(())
}

/// Gives a conductor that knows the schema version `known` a lease with a new epoch, which it returns.
pub(super) async fn register(
    connection: &mut Connection,
    new: &NewConductor,
    known: i64,
    (now, lasts): (Timestamp, Duration),
) -> Result<i64> {
    const REGISTER: &str = "INSERT INTO conductors (hostname, seen_at, created_at, alive_until, conductor_groups, instance, installation, \
             epoch, program, schema_known) VALUES ($1, $2, $2, $3, $4, $5, $6, 1, $7, $8) \
         ON CONFLICT (hostname) DO UPDATE SET seen_at = $2, alive_until = $3, conductor_groups = $4, instance = $5, installation = $6, \
             epoch = conductors.epoch + 1, draining = 0, settled = '', turns = 0, program = $7, schema_known = $8 \
         RETURNING epoch";
    let NewConductor { hostname, groups, instance, installation } = new;
    let (hostname, instance) = (hostname.as_str(), instance.as_str());
    let until = end(now, lasts);
    let mut values = values![hostname, now, until, json(groups), instance, installation.as_str()];
    values.extend(values![program::VERSION, known]);
    let row = connection.row(REGISTER, values).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?)
}

/// Deletes the conductors that were last seen before then.
pub(super) async fn forget_dead(connection: &mut Connection, before: Timestamp) -> Result<()> {
    const FORGET: &str = "DELETE FROM conductors WHERE seen_at < $1 AND alive_until < $1";
    connection.execute(FORGET, values![before]).await?;
    Ok(())
}

/// Renews a lease with the report of its conductor. Returns whether the lease lasted until now.
pub(super) async fn renew(
    connection: &mut Connection,
    lease: &ConductorLease,
    report: &ConductorReport,
    lasts: Duration,
    now: Timestamp,
) -> Result<bool> {
    const RENEW: &str = "UPDATE conductors SET seen_at = $3, alive_until = $4, settled = $5, turns = $6 \
         WHERE hostname = $1 AND epoch = $2 AND alive_until > $3";
    let ConductorLease { hostname, epoch } = lease;
    let ConductorReport { settled, turns } = report;
    let until = end(now, lasts);
    let values = values![hostname.as_str(), *epoch, now, until, settled.as_str(), *turns];
    Ok(connection.execute(RENEW, values).await? > 0)
}

/// Ends a lease.
pub(super) async fn release(
    connection: &mut Connection,
    lease: &ConductorLease,
    now: Timestamp,
) -> Result<()> {
    const RELEASE: &str = "UPDATE conductors SET seen_at = $3, alive_until = $3, turns = 0 \
         WHERE hostname = $1 AND epoch = $2 AND alive_until > $3";
    connection.execute(RELEASE, values![lease.hostname.as_str(), lease.epoch, now]).await?;
    Ok(())
}

/// Lets a conductor take no work until it registers again.
pub(super) async fn drain(connection: &mut Connection, hostname: &str) -> Result<()> {
    const DRAIN: &str = "UPDATE conductors SET draining = 1 WHERE hostname = $1";
    connection.execute(DRAIN, values![hostname]).await?;
    Ok(())
}

/// Lets a conductor take work again.
pub(super) async fn undrain(connection: &mut Connection, hostname: &str) -> Result<()> {
    const UNDRAIN: &str = "UPDATE conductors SET draining = 0 WHERE hostname = $1";
    connection.execute(UNDRAIN, values![hostname]).await?;
    Ok(())
}

/// Returns all conductors in the order of their creation.
pub(super) async fn list(connection: &mut Connection, now: Timestamp) -> Result<Vec<ConductorRow>> {
    const LIST: &str = "SELECT hostname, created_at, seen_at, alive_until, conductor_groups, epoch, draining, settled, turns, instance, \
         installation, program, schema_known FROM conductors ORDER BY created_at, hostname";
    connection.rows(LIST, values![]).await?.iter().map(|row| read(row, now)).collect()
}

fn read(row: &Row, now: Timestamp) -> Result<ConductorRow> {
    let (seen_at, alive_until) = (row.time(TABLE, 2)?, row.time(TABLE, 3)?);
    Ok(ConductorRow {
        hostname: row.text(0)?.to_owned(),
        created_at: row.time(TABLE, 1)?,
        seen_at,
        is_alive: alive_until > now,
        is_released: alive_until <= seen_at,
        groups: row.json(TABLE, 4)?,
        epoch: row.int(5)?,
        is_draining: row.int(6)? != 0,
        settled: row.text(7)?.to_owned(),
        turns: u32::try_from(row.int(8)?).unwrap_or(u32::MAX),
        instance: row.text(9)?.to_owned(),
        installation: row.text(10)?.to_owned(),
        program: row.text(11)?.to_owned(),
        schema_known: row.int(12)?,
    })
}

/// The end of a lease that begins now.
fn end(now: Timestamp, lasts: Duration) -> Timestamp {
    now.saturating_add(lasts).unwrap_or(Timestamp::MAX)
}

fn json(groups: &[String]) -> String {
    serde_json::Value::from(groups).to_string()
}
