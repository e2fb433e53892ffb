//! The records that each key of the table `seals` seals.

use database::{Connection, Result, values};

use crate::secrets::NO_SECRETS;

/// Returns the keys, each with the number of rows that it seals.
pub(crate) async fn counts(connection: &mut Connection) -> Result<Vec<(String, u64)>> {
    const COUNTS: &str = "SELECT s.id, (SELECT count(*) FROM nodes WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM racks WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM hypervisor_profiles WHERE sealed_by = s.id) \
         + (SELECT count(*) FROM resources WHERE sealed_by = s.id) FROM seals s WHERE s.id <> $1 ORDER BY s.id";
    let rows = connection.rows(COUNTS, values![NO_SECRETS]).await?;
    let read = |row: &database::Row| Ok((row.text(0)?.to_owned(), row.int(1)?.unsigned_abs()));
    rows.iter().map(read).collect()
}
