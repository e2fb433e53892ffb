//! The table `conductors`: the conductors, and when each was last alive.

use database::{Connection, Result, values};
use jiff::Timestamp;

pub(crate) async fn touch(
    connection: &mut Connection,
    hostname: &str,
    now: Timestamp,
) -> Result<()> {
    const TOUCH: &str = "INSERT INTO conductors (hostname, seen_at) VALUES ($1, $2) \
         ON CONFLICT (hostname) DO UPDATE SET seen_at = $2";
    connection.execute(TOUCH, values![hostname, now]).await?;
    Ok(())
}

/// Returns all conductors, sorted by host name.
pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<(String, Timestamp)>> {
    const LIST: &str = "SELECT hostname, seen_at FROM conductors ORDER BY hostname";
    let rows = connection.rows(LIST, values![]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.time("conductors", 1)?))).collect()
}
