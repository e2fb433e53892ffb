//! The public interface of the store.

use std::time::Duration;

use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::{Database, Result, Schema, reading, writing};
use jiff::Timestamp;

use crate::table::guess::{self, GuessLimit};
use crate::table::session::{self, NewSession, SessionLimits, SessionUse};

/// The SQL scripts of the tables, by version, starting with version 1.
pub const SCHEMA: Schema = &[include_str!("schema.sql")];

/// The name of the lock under which buckets of guesses change.
const GUESSES: &str = "guesses";

/// The sessions and the limits of wrong passwords that several consoles share. Clones share one database. `now` is the time on SQLite;
/// PostgreSQL has a clock of its own.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens `postgres://user@host/database` with this timeout, and migrates its tables to the newest version.
    pub async fn open_within(url: &str, timeout: Duration) -> Result<Store> {
        Ok(Store { database: Database::open_within(url, SCHEMA, timeout).await? })
    }

    /// Whether several consoles may work on the database: on PostgreSQL.
    pub fn is_shared(&self) -> bool {
        self.database.is_shared()
    }

    /// Adds a session. Removes those that have ended, and the one that was idle longest if there are too many.
    pub async fn insert_session(
        &self,
        new: &NewSession,
        limits: SessionLimits,
        now: Timestamp,
    ) -> Result<()> {
        let new = new.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            let now = c.clock(now).await?;
            session::insert(c, &new, limits, now).await
        })
    }

    /// Returns a session that has not ended, sealed.
    pub async fn find_session(
        &self,
        id: &str,
        by: SessionUse,
        limits: SessionLimits,
        now: Timestamp,
    ) -> Result<Option<String>> {
        let own = id.to_owned();
        let found = reading!(self.database, |c| {
            let now = c.clock(now).await?;
            session::find(c, &own, limits, now).await
        })?;
        let Some(found) = found else { return Ok(None) };
        if by == SessionUse::Request && found.use_is_news {
            let own = id.to_owned();
            writing!(self.database, OneStatement, |c| {
                let now = c.clock(now).await?;
                session::touch(c, &own, now).await
            })?;
        }
        Ok(Some(found.sealed))
    }

    /// Removes a session, and returns it sealed.
    pub async fn remove_session(&self, id: &str) -> Result<Option<String>> {
        let id = id.to_owned();
        writing!(self.database, OneStatement, |c| session::remove(c, &id).await)
    }

    /// Takes a guess from each of these buckets, or from none of them. Returns how long to wait for the next try, which is zero if the guesses
    /// were taken.
    pub async fn take_guesses(&self, limits: &[GuessLimit], now: Timestamp) -> Result<Duration> {
        let limits = limits.to_vec();
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(GUESSES).await?;
            let now = c.clock(now).await?;
            guess::take(c, &limits, now).await
        })
    }

    /// Gives a guess back to each of these buckets.
    pub async fn give_back_guesses(&self, limits: &[GuessLimit]) -> Result<()> {
        let limits = limits.to_vec();
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(GUESSES).await?;
            guess::give_back(c, &limits).await
        })
    }
}
