//! The table `discoveries`: machines that nobody has enrolled.

use baremetal_core::Discovery;
use database::table::{PagePart, PageRows};
use database::{Connection, Row, StoreError, values};
use hardware::MacAddress;
use jiff::Timestamp;

const TABLE: &str = "discoveries";

/// The maximum number of machines. Anybody on the network can invent MAC addresses, so the table has to be limited.
const KEPT: i64 = 1024;

/// Records a DHCP request of `mac`.
pub(crate) async fn touch(
    connection: &mut Connection,
    mac: MacAddress,
    now: Timestamp,
) -> Result<(), StoreError> {
    const TOUCH: &str = "INSERT INTO discoveries (mac, first_seen_at, last_seen_at) VALUES ($1, $2, $2) \
         ON CONFLICT (mac) DO UPDATE SET last_seen_at = $2";
    connection.execute(TOUCH, values![mac.to_string(), now]).await?;
    forget_oldest(connection).await
}

/// Inserts or replaces the row, keeping the time of the first request.
pub(crate) async fn save(connection: &mut Connection, found: &Discovery) -> Result<(), StoreError> {
    const SAVE: &str = "INSERT INTO discoveries (mac, first_seen_at, last_seen_at, data) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (mac) DO UPDATE SET last_seen_at = $3, data = $4";
    let data = found.data.as_ref().map(ToString::to_string);
    let values = values![found.mac.to_string(), found.first_seen_at, found.last_seen_at, data];
    connection.execute(SAVE, values).await?;
    forget_oldest(connection).await
}

async fn forget_oldest(connection: &mut Connection) -> Result<(), StoreError> {
    const FORGET: &str = "DELETE FROM discoveries WHERE mac IN \
         (SELECT mac FROM discoveries ORDER BY last_seen_at DESC, mac LIMIT $1 OFFSET $1)";
    connection.execute(FORGET, values![KEPT]).await?;
    Ok(())
}

/// The machine after which a list continues: when it was first seen, and its address.
pub type Seen = (Timestamp, MacAddress);

/// Returns a part of all machines, the first seen first.
///
/// An inventory can have megabytes, so the sizes are read first, and then only the rows that fit.
pub(crate) async fn list_part(
    connection: &mut Connection,
    limit: u32,
    part: PagePart<Seen>,
) -> Result<PageRows<Discovery, Seen>, StoreError> {
    const SIZES: &str = "SELECT CAST(coalesce(length(data), 0) AS BIGINT) FROM discoveries \
         WHERE (first_seen_at, mac) > ($2, $3) ORDER BY first_seen_at, mac LIMIT $1";
    const LIST: &str = "SELECT mac, first_seen_at, last_seen_at, data FROM discoveries \
         WHERE (first_seen_at, mac) > ($2, $3) ORDER BY first_seen_at, mac LIMIT $1";
    let (at, mac) = match &part.after {
        Some((at, mac)) => (*at, mac.to_string()),
        // No time is earlier, and no address is less than no text.
        None => (Timestamp::MIN, String::new()),
    };
    let sizes = connection.rows(SIZES, values![limit, at, mac.as_str()]).await?;
    let (mut fit, mut bytes) = (0_u32, 0_u64);
    for size in &sizes {
        bytes += size.int(0)?.unsigned_abs();
        if bytes > part.bytes as u64 && fit > 0 {
            break;
        }
        fit += 1;
    }
    let rows = connection.rows(LIST, values![fit, at, mac.as_str()]).await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, StoreError>>()?;
    let is_full = fit == limit || (fit as usize) < sizes.len();
    let more = found.last().filter(|_| is_full).map(|last| (last.first_seen_at, last.mac));
    Ok(PageRows { found, more })
}

pub(crate) async fn delete(connection: &mut Connection, mac: MacAddress) -> Result<(), StoreError> {
    connection.execute("DELETE FROM discoveries WHERE mac = $1", values![mac.to_string()]).await?;
    Ok(())
}

fn read(row: &Row) -> Result<Discovery, StoreError> {
    let data = match row.optional_text(3)? {
        None => None,
        Some(_) => Some(row.json(TABLE, 3)?),
    };
    Ok(Discovery {
        mac: row.parse(TABLE, 0)?,
        first_seen_at: row.time(TABLE, 1)?,
        last_seen_at: row.time(TABLE, 2)?,
        data,
    })
}
