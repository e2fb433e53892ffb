//! The table `leases`: an IPv4 address for each MAC, for ever.

use database::{Connection, Row, StoreError, values};
use std::net::Ipv4Addr;

use hardware::MacAddress;

pub(crate) async fn find(
    connection: &mut Connection,
    mac: MacAddress,
) -> Result<Option<Ipv4Addr>, StoreError> {
    const FIND: &str = "SELECT address FROM leases WHERE mac = $1";
    connection.row(FIND, values![mac.to_string()]).await?.as_ref().map(read).transpose()
}

/// The address of `mac`: the one it has, if that may still be used, or else the lowest free one from `first` to
/// `last`. `None` where none is free.
pub(crate) async fn lease(
    connection: &mut Connection,
    mac: MacAddress,
    (first, last): (Ipv4Addr, Ipv4Addr),
    taken: &[Ipv4Addr],
) -> Result<Option<Ipv4Addr>, StoreError> {
    const IN_RANGE: &str = "SELECT address FROM leases WHERE address >= $1 AND address <= $2 AND mac <> $3 ORDER BY address";
    const SAVE: &str = "INSERT INTO leases (mac, address) VALUES ($1, $2) ON CONFLICT (mac) DO UPDATE SET address = $2";
    connection.write_alone().await?;
    let had = find(connection, mac).await?;
    if let Some(had) = had.filter(|had| (first..=last).contains(had) && !taken.contains(had)) {
        return Ok(Some(had));
    }

    let rows = connection
        .rows(IN_RANGE, values![u32::from(first), u32::from(last), mac.to_string()])
        .await?;
    let mut leased = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
    let free = (u32::from(first)..=u32::from(last))
        .map(Ipv4Addr::from)
        .find(|address| leased.next_if_eq(address).is_none() && !taken.contains(address));
    if let Some(free) = free {
        connection.execute(SAVE, values![mac.to_string(), u32::from(free)]).await?;
    }
    Ok(free)
}

fn read(row: &Row) -> Result<Ipv4Addr, StoreError> {
    let number = row.int(0)?;
    u32::try_from(number)
        .map(Ipv4Addr::from)
        .map_err(|error| StoreError::corrupt("leases", &number.to_string(), error))
}
