//! The table `services`: the clusterd processes that work on this database.

use database::{Connection, Result, values};
use jiff::Timestamp;

use crate::ServiceSeen;

const TABLE: &str = "services";

pub(crate) async fn touch(
    connection: &mut Connection,
    hostname: &str,
    now: Timestamp,
) -> Result<()> {
    const TOUCH: &str = "INSERT INTO services (hostname, started_at, seen_at, reports) VALUES ($1, $2, $2, 1) \
         ON CONFLICT (hostname) DO UPDATE SET seen_at = $2, reports = services.reports + 1";
    connection.execute(TOUCH, values![hostname, now]).await?;
    Ok(())
}

/// Returns all services, sorted by hostname.
pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<ServiceSeen>> {
    const LIST: &str =
        "SELECT hostname, started_at, seen_at, reports FROM services ORDER BY hostname";
    let rows = connection.rows(LIST, values![]).await?;
    let read = |row: &database::Row| {
        Ok(ServiceSeen {
            hostname: row.text(0)?.to_owned(),
            started_at: row.time(TABLE, 1)?,
            seen_at: row.time(TABLE, 2)?,
            reports: row.int(3)?,
        })
    };
    rows.iter().map(read).collect()
}
