//! The table `sessions`: the sealed sessions of logged-in users.

use std::time::Duration;

use database::{Connection, Result, values};
use jiff::Timestamp;

/// How many sessions there are, and how long each lasts.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// A new session replaces the one that was idle longest.
    pub at_most: u32,
    /// How long a session may be idle.
    pub idle_timeout: Duration,
}

/// A session that begins now.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// A digest of the cookie.
    pub id: String,
    pub sealed: String,
    pub lifetime: Duration,
}

/// Whether a session is found for a request of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// The session is not idle now.
    Request,
    /// A page looks whether the session lasts.
    Check,
}

/// A use is written at most so often, because each page uses its session many times.
const LONGEST_UNWRITTEN: Duration = Duration::from_secs(10);

/// Adds a session, after those that have ended were deleted.
pub(crate) async fn insert(
    connection: &mut Connection,
    new: &NewSession,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<()> {
    const INSERT: &str =
        "INSERT INTO sessions (id, sealed, ends_at, used_at) VALUES ($1, $2, $3, $4)";
    const ENDED: &str = "DELETE FROM sessions WHERE ends_at <= $1 OR used_at <= $2";
    const TOO_MANY: &str = "DELETE FROM sessions WHERE id IN \
         (SELECT id FROM sessions ORDER BY used_at DESC, id LIMIT 1000000 OFFSET $1)";
    let idle_since = micros(now) - length(limits.idle_timeout);
    connection.execute(ENDED, values![now, idle_since]).await?;
    connection.execute(TOO_MANY, values![i64::from(limits.at_most.max(1)) - 1]).await?;
    let ends_at = micros(now).saturating_add(length(new.lifetime));
    let values = values![new.id.as_str(), new.sealed.as_str(), ends_at, now];
    connection.execute(INSERT, values).await?;
    Ok(())
}

/// A session that has not ended.
pub(crate) struct OpenSession {
    pub(crate) sealed: String,
    /// Whether a use of the session now has to be written.
    pub(crate) use_is_news: bool,
}

pub(crate) async fn find(
    connection: &mut Connection,
    id: &str,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Option<OpenSession>> {
    const FIND: &str = "SELECT sealed, used_at FROM sessions \
         WHERE id = $1 AND ends_at > $2 AND used_at > $3";
    let idle_since = micros(now) - length(limits.idle_timeout);
    let found = connection.row(FIND, values![id, now, idle_since]).await?;
    let Some(row) = found else { return Ok(None) };
    let unwritten = LONGEST_UNWRITTEN.min(limits.idle_timeout / 10);
    let use_is_news = row.int(1)? <= micros(now) - length(unwritten);
    Ok(Some(OpenSession { sealed: row.text(0)?.to_owned(), use_is_news }))
}

/// Records a use of a session.
pub(crate) async fn touch(connection: &mut Connection, id: &str, now: Timestamp) -> Result<()> {
    const TOUCH: &str = "UPDATE sessions SET used_at = $2 WHERE id = $1 AND used_at < $2";
    connection.execute(TOUCH, values![id, now]).await?;
    Ok(())
}

/// Deletes a session, and returns it sealed.
pub(crate) async fn remove(connection: &mut Connection, id: &str) -> Result<Option<String>> {
    const REMOVE: &str = "DELETE FROM sessions WHERE id = $1 RETURNING sealed";
    let removed = connection.row(REMOVE, values![id]).await?;
    let Some(row) = removed else { return Ok(None) };
    Ok(Some(row.text(0)?.to_owned()))
}

fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

fn length(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}
