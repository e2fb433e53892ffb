//! The table `conductors`: the conductors, and when each was last alive.

use database::{Connection, Result, Row, values};
use jiff::Timestamp;

/// A conductor that was alive at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConductorRow {
    pub hostname: String,
    /// When the conductor was alive for the first time.
    pub created_at: Timestamp,
    pub seen_at: Timestamp,
}

pub(crate) async fn touch(
    connection: &mut Connection,
    hostname: &str,
    now: Timestamp,
) -> Result<()> {
    const TOUCH: &str = "INSERT INTO conductors (hostname, seen_at, created_at) VALUES ($1, $2, $2) \
         ON CONFLICT (hostname) DO UPDATE SET seen_at = $2";
    connection.execute(TOUCH, values![hostname, now]).await?;
    Ok(())
}

/// Returns all conductors in the order of their creation.
pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<ConductorRow>> {
    const LIST: &str =
        "SELECT hostname, created_at, seen_at FROM conductors ORDER BY created_at, hostname";
    let read = |row: &Row| {
        Ok(ConductorRow {
            hostname: row.text(0)?.to_owned(),
            created_at: row.time("conductors", 1)?,
            seen_at: row.time("conductors", 2)?,
        })
    };
    connection.rows(LIST, values![]).await?.iter().map(read).collect()
}
