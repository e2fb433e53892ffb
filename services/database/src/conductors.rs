//! The table `conductors`, which both services have: the conductors that share the database, their leases, and how they notify each other.
//!
//! Each schema creates the table like this:
//!
//! ```sql
//! CREATE TABLE conductors (
//!     hostname         TEXT   NOT NULL PRIMARY KEY,
//!     created_at       BIGINT NOT NULL,
//!     seen_at          BIGINT NOT NULL,
//!     alive_until      BIGINT NOT NULL,
//!     conductor_groups TEXT   NOT NULL,
//!     instance         TEXT   NOT NULL DEFAULT '',
//!     installation     TEXT   NOT NULL DEFAULT '',
//!     epoch            BIGINT NOT NULL DEFAULT 0,
//!     draining         BIGINT NOT NULL DEFAULT 0,
//!     settled          TEXT   NOT NULL DEFAULT '',
//!     turns            BIGINT NOT NULL DEFAULT 0,
//!     program          TEXT   NOT NULL DEFAULT '',
//!     schema_known     BIGINT NOT NULL DEFAULT 0
//! );
//! ```

mod rows;

use std::time::Duration;

use jiff::Timestamp;

use crate::WriteKind::{AnyStatementCanFail, OneStatement};
use crate::{Connection, Database, Notifications, Result, migrate, reading, writing};
pub use rows::{ConductorLease, ConductorReport, ConductorRow, NewConductor};

/// The name of the lock under which leases change, so that all conductors see these changes in one order: the clock of the database is read
/// under the lock, and a lease that passed while its renewal waited is not renewed.
const LEASE_LOCK: &str = "conductors";

/// How long a conductor without a lease, which is older than leases, may still be running after its last sign of life. It gives one every ten
/// seconds.
const WITHOUT_LEASE: Duration = Duration::from_secs(30);

/// How long a conductor that is dead stays in the list.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a conductor without a lease counts as alive after a sign of life, as in Ironic.
const ALIVE_FOR: Duration = Duration::from_secs(60);

/// The result of asking for the lease of a conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// The conductor has a lease.
    Registered(ConductorLease),
    /// Another process has the lease of this host name.
    Taken,
    /// Another conductor makes its tokens or certificates with another key.
    OtherKey {
        /// The host name of the other conductor.
        hostname: String,
    },
    /// Another conductor is too old to work beside others of this version.
    TooOld {
        /// The host name of the other conductor.
        hostname: String,
        /// The version of its program; empty if it is too old to record that.
        program: String,
    },
}

/// The result of draining or undraining a conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// It was recorded.
    Recorded,
    /// There is no such conductor.
    Missing,
    /// The conductor has no lease.
    NotAlive,
    /// No other living conductor takes work of this conductor group.
    LastOfGroup(String),
}

/// The conductors on a database.
#[derive(Clone)]
pub struct Conductors {
    database: Database,
    channel: &'static str,
}

impl Conductors {
    /// The conductors on a database, which notify each other on `channel`.
    pub fn new(database: Database, channel: &'static str) -> Conductors {
        Conductors { database, channel }
    }

    /// Whether several conductors may work on the database: on PostgreSQL.
    pub fn is_shared(&self) -> bool {
        self.database.is_shared()
    }

    /// Records that the conductor on `hostname`, which shares the database with no other, is alive.
    pub async fn touch(&self, hostname: &str, groups: &[String], now: Timestamp) -> Result<()> {
        let (hostname, groups) = (hostname.to_owned(), groups.to_vec());
        let known = self.database.schema_known();
        writing!(self.database, OneStatement, |c| {
            rows::touch(c, &hostname, &groups, known, (now, ALIVE_FOR)).await
        })
    }

    /// Returns the conductors in the order of their creation. `now` is the time on SQLite; PostgreSQL has a clock of its own.
    pub async fn list(&self, now: Timestamp) -> Result<Vec<ConductorRow>> {
        reading!(self.database, |c| {
            let now = c.clock(now).await?;
            rows::list(c, now).await
        })
    }

    /// Gives a conductor a lease that lasts for `lasts` by the clock of the database. The same instance gets a new lease before the last one
    /// has passed: only one process has its name.
    pub async fn register(
        &self,
        new: &NewConductor,
        lasts: Duration,
        now: Timestamp,
    ) -> Result<RegisterOutcome> {
        let (new, known) = (new.clone(), self.database.schema_known());
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = locked(c, now).await?;
            let all = rows::list(c, now).await?;
            // The process may have been paused while newer programs narrowed the database.
            let needed = migrate::check_known(c, known).await?;
            if let Some(refused) = refusal(&all, &new, needed, now) {
                return Ok(refused);
            }
            rows::forget_dead(c, now - KEPT).await?;
            let epoch = rows::register(c, &new, known, (now, lasts)).await?;
            Ok(RegisterOutcome::Registered(ConductorLease { hostname: new.hostname, epoch }))
        })
    }

    /// Renews a lease with the report of its conductor, and returns all conductors. Returns `None` and changes nothing if the lease has passed.
    pub async fn renew(
        &self,
        lease: &ConductorLease,
        report: &ConductorReport,
        lasts: Duration,
        now: Timestamp,
    ) -> Result<Option<Vec<ConductorRow>>> {
        let (lease, report) = (lease.clone(), report.clone());
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = locked(c, now).await?;
            if !rows::renew(c, &lease, &report, lasts, now).await? {
                return Ok(None);
            }
            rows::list(c, now).await.map(Some)
        })
    }

    /// Ends a lease, so that others take over at once.
    pub async fn release(&self, lease: &ConductorLease, now: Timestamp) -> Result<()> {
        let lease = lease.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = locked(c, now).await?;
            rows::release(c, &lease, now).await
        })
    }

    /// Lets a conductor take no work until it starts again, if others manage its conductor groups.
    pub async fn drain(&self, hostname: &str, now: Timestamp) -> Result<DrainOutcome> {
        let hostname = hostname.to_owned();
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = locked(c, now).await?;
            let all = rows::list(c, now).await?;
            let Some(own) = all.iter().find(|it| it.hostname == hostname) else {
                return Ok(DrainOutcome::Missing);
            };
            if !own.is_alive || own.epoch == 0 {
                return Ok(DrainOutcome::NotAlive);
            }
            let takes_work = |it: &&ConductorRow| it.is_alive && it.epoch > 0 && !it.is_draining;
            let others = all.iter().filter(takes_work).filter(|it| it.hostname != hostname);
            let others: Vec<&String> = others.flat_map(|it| &it.groups).collect();
            if let Some(group) = own.groups.iter().find(|group| !others.contains(group)) {
                return Ok(DrainOutcome::LastOfGroup(group.clone()));
            }
            rows::drain(c, &hostname).await?;
            Ok(DrainOutcome::Recorded)
        })
    }

    /// Lets a conductor take work again.
    pub async fn undrain(&self, hostname: &str, now: Timestamp) -> Result<DrainOutcome> {
        let hostname = hostname.to_owned();
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = locked(c, now).await?;
            let all = rows::list(c, now).await?;
            match all.iter().find(|it| it.hostname == hostname) {
                None => Ok(DrainOutcome::Missing),
                Some(own) if !own.is_alive || own.epoch == 0 => Ok(DrainOutcome::NotAlive),
                Some(_) => {
                    rows::undrain(c, &hostname).await?;
                    Ok(DrainOutcome::Recorded)
                }
            }
        })
    }

    /// Runs the parts of an upgrade that waited until no older conductor lives, if none does.
    pub async fn finish_upgrade(&self) -> Result<()> {
        self.database.finish_upgrade().await
    }

    /// Sends a notification to the conductors on the database.
    pub async fn notify(&self, text: String) -> Result<()> {
        self.database.notify(self.channel, text).await
    }

    /// Receives the notifications of conductors; `None` on SQLite.
    pub async fn notifications(&self) -> Result<Option<Notifications>> {
        self.database.notifications(self.channel).await
    }
}

/// Returns why a conductor gets no lease beside `all`. All of them have to know the schema version `needed`.
fn refusal(
    all: &[ConductorRow],
    new: &NewConductor,
    needed: i64,
    now: Timestamp,
) -> Option<RegisterOutcome> {
    all.iter().find_map(|other| {
        let (hostname, is_own) = (other.hostname.clone(), other.hostname == new.hostname);
        let program = other.program.clone();
        match (other.epoch > 0, is_own) {
            (true, true) if other.is_alive && other.instance != new.instance => {
                Some(RegisterOutcome::Taken)
            }
            (true, false) if other.is_alive && other.schema_known < needed => {
                Some(RegisterOutcome::TooOld { hostname, program })
            }
            (true, false) if other.is_alive && other.installation != new.installation => {
                Some(RegisterOutcome::OtherKey { hostname })
            }
            (false, false) if other.seen_at > now - WITHOUT_LEASE => {
                Some(RegisterOutcome::TooOld { hostname, program })
            }
            (true | false, true | false) => None,
        }
    })
}

/// Takes the lock, and reads the clock of the database.
async fn locked(connection: &mut Connection, now: Timestamp) -> Result<Timestamp> {
    connection.lock_name(LEASE_LOCK).await?;
    connection.clock(now).await
}
