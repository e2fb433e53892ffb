//! The table `discoveries`: machines and BMCs that nobody has enrolled, and those that were accepted.

use baremetal_core::{Discovery, DiscoveryId, NodeUuid};
use database::table::{PagePart, PageRows, changed_one};
use database::{Connection, Query, Result, Row, values};
use jiff::Timestamp;

const TABLE: &str = "discoveries";

/// The columns that `read` reads.
const SELECT: &str = "SELECT id, first_seen_at, last_seen_at, data, node FROM discoveries";

/// The maximum number of discoveries. Anybody on the network can invent MAC addresses, so the table has to be limited.
const KEPT: i64 = 1024;

/// Records that an unknown machine or BMC was seen. A discovery that was accepted before is listed again: its node lost the port or the BMC.
pub(crate) async fn touch(
    connection: &mut Connection,
    id: DiscoveryId,
    now: Timestamp,
) -> Result<()> {
    const TOUCH: &str = "INSERT INTO discoveries (id, first_seen_at, last_seen_at) VALUES ($1, $2, $2) \
         ON CONFLICT (id) DO UPDATE SET last_seen_at = $2, node = NULL";
    connection.execute(TOUCH, values![id.to_string(), now]).await?;
    forget_oldest(connection).await
}

/// Inserts or replaces the row, keeping the time at which it was seen first.
pub(crate) async fn save(connection: &mut Connection, found: &Discovery) -> Result<()> {
    const SAVE: &str = "INSERT INTO discoveries (id, first_seen_at, last_seen_at, data) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET last_seen_at = $3, data = $4, node = NULL";
    let data = found.data.as_ref().map(ToString::to_string);
    let values = values![found.id.to_string(), found.first_seen_at, found.last_seen_at, data];
    connection.execute(SAVE, values).await?;
    forget_oldest(connection).await
}

/// Writes the data of a discovery, unless the discovery was accepted, deleted or seen again meanwhile.
pub(crate) async fn update_data(connection: &mut Connection, found: &Discovery) -> Result<()> {
    const UPDATE: &str =
        "UPDATE discoveries SET data = $3 WHERE id = $1 AND last_seen_at = $2 AND node IS NULL";
    let data = found.data.as_ref().map(ToString::to_string);
    connection.execute(UPDATE, values![found.id.to_string(), found.last_seen_at, data]).await?;
    Ok(())
}

async fn forget_oldest(connection: &mut Connection) -> Result<()> {
    const FORGET: &str = "DELETE FROM discoveries WHERE id IN \
         (SELECT id FROM discoveries ORDER BY last_seen_at DESC, id LIMIT $1 OFFSET $1)";
    connection.execute(FORGET, values![KEPT]).await?;
    Ok(())
}

/// Returns a discovery, accepted or not.
pub(crate) async fn find(
    connection: &mut Connection,
    id: DiscoveryId,
) -> Result<Option<Discovery>> {
    let mut query = Query::new(SELECT);
    query.and_value("id = ?", id.to_string());
    query.row(connection).await?.as_ref().map(read).transpose()
}

/// Records the node that a discovery was accepted into, unless it was accepted before.
pub(crate) async fn accept(
    connection: &mut Connection,
    id: DiscoveryId,
    node: NodeUuid,
) -> Result<()> {
    const ACCEPT: &str = "UPDATE discoveries SET node = $2 WHERE id = $1 AND node IS NULL";
    changed_one(connection.execute(ACCEPT, values![id.to_string(), node]).await?)
}

/// The discovery after which a list continues: when it was first seen, and its id.
pub type Seen = (Timestamp, DiscoveryId);

/// Returns a part of all discoveries that were not accepted, the first seen first.
///
/// An inventory can have megabytes, so the sizes are read first, and then only the rows that fit.
pub(crate) async fn list_part(
    connection: &mut Connection,
    limit: u32,
    part: PagePart<Seen>,
) -> Result<PageRows<Discovery, Seen>> {
    const SIZES: &str = "SELECT CAST(coalesce(length(data), 0) AS BIGINT) FROM discoveries \
         WHERE node IS NULL AND (first_seen_at, id) > ($2, $3) ORDER BY first_seen_at, id LIMIT $1";
    const LIST: &str = "SELECT id, first_seen_at, last_seen_at, data, node FROM discoveries \
         WHERE node IS NULL AND (first_seen_at, id) > ($2, $3) ORDER BY first_seen_at, id LIMIT $1";
    let (at, id) = match &part.after {
        Some((at, id)) => (*at, id.to_string()),
        // No time is earlier, and no id is less than no text.
        None => (Timestamp::MIN, String::new()),
    };
    let sizes = connection.rows(SIZES, values![limit, at, id.as_str()]).await?;
    let (mut fit, mut bytes) = (0_u32, 0_u64);
    for size in &sizes {
        bytes += size.int(0)?.unsigned_abs();
        if bytes > part.bytes as u64 && fit > 0 {
            break;
        }
        fit += 1;
    }
    let rows = connection.rows(LIST, values![fit, at, id.as_str()]).await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    let is_full = fit == limit || (fit as usize) < sizes.len();
    let more = found.last().filter(|_| is_full).map(|last| (last.first_seen_at, last.id));
    Ok(PageRows { found, more })
}

pub(crate) async fn delete(connection: &mut Connection, id: DiscoveryId) -> Result<()> {
    connection.execute("DELETE FROM discoveries WHERE id = $1", values![id.to_string()]).await?;
    Ok(())
}

fn read(row: &Row) -> Result<Discovery> {
    let data = match row.optional_text(3)? {
        None => None,
        Some(_) => Some(row.json(TABLE, 3)?),
    };
    let node = match row.optional_text(4)? {
        None => None,
        Some(_) => Some(row.parse(TABLE, 4)?),
    };
    Ok(Discovery {
        id: row.parse(TABLE, 0)?,
        first_seen_at: row.time(TABLE, 1)?,
        last_seen_at: row.time(TABLE, 2)?,
        data,
        node,
    })
}
