//! The tables `leases`, with an IPv4 address for each MAC address, and `addresses_in_use`, with addresses at which a machine without a
//! lease answers.
//!
//! The lease of a port lasts as long as the port. The lease of a MAC address without a port (an unknown machine) lasts until `expires_at`.

use baremetal_core::{NamedMachine, NodeUuid};
use database::{Connection, Result, Row, StoreError, values};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use hardware::MacAddress;
use jiff::Timestamp;

/// The addresses that can be leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPool {
    pub first: Ipv4Addr,
    /// The last address, included.
    pub last: Ipv4Addr,
    /// Addresses between `first` and `last` that are never leased.
    pub reserved: Vec<Ipv4Addr>,
    /// How long the lease of an unknown machine lasts after its last request.
    pub stranger_lease_time: Duration,
}

/// The lease of one MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpLease {
    pub address: Ipv4Addr,
    /// Whether probing found the address free. Until then the address must not be given to the machine.
    pub is_probed: bool,
}

pub(crate) async fn find(
    connection: &mut Connection,
    mac: MacAddress,
) -> Result<Option<DhcpLease>> {
    const FIND: &str = "SELECT address, probed FROM leases WHERE mac = $1";
    let row = connection.row(FIND, values![mac.to_string()]).await?;
    row.map(|row| Ok(DhcpLease { address: read(&row)?, is_probed: row.int(1)? != 0 })).transpose()
}

/// Returns the leased addresses of a pool, in their order, without those of expired leases.
pub(crate) async fn leased(
    connection: &mut Connection,
    pool: &AddressPool,
    now: Timestamp,
) -> Result<Vec<Ipv4Addr>, StoreError> {
    const LEASED: &str = "SELECT address FROM leases WHERE address BETWEEN $1 AND $2 \
         AND (expires_at IS NULL OR expires_at > $3) ORDER BY address";
    let within = values![u32::from(pool.first), u32::from(pool.last), now];
    connection.rows(LEASED, within).await?.iter().map(read).collect()
}

/// Returns the nodes with a name whose ports have addresses, in the order of the names.
pub(crate) async fn named_machines(
    connection: &mut Connection,
) -> Result<Vec<NamedMachine>, StoreError> {
    const NAMED: &str = "SELECT leases.address, nodes.id, nodes.name FROM leases \
         JOIN ports ON ports.address = leases.mac JOIN nodes ON nodes.id = ports.node \
         WHERE nodes.name IS NOT NULL AND leases.probed <> 0 ORDER BY nodes.name, leases.address";
    let mut machines: Vec<NamedMachine> = Vec::new();
    for row in connection.rows(NAMED, values![]).await? {
        let (address, node): (_, NodeUuid) = (read(&row)?, row.parse("nodes", 1)?);
        match machines.last_mut().filter(|last| last.node == node) {
            Some(last) => last.addresses.push(address),
            None => {
                let name = row.parse("nodes", 2)?;
                machines.push(NamedMachine { node, name, addresses: vec![address] });
            }
        }
    }
    Ok(machines)
}

/// Leases an address to `mac`: its current address if that is still usable, or else the lowest free address of the pool. If none is free
/// and `mac` belongs to a port, takes the address of the unknown machine whose last request is the oldest. Returns `None` if no address is
/// left.
pub(crate) async fn lease(
    connection: &mut Connection,
    mac: MacAddress,
    pool: &AddressPool,
    now: Timestamp,
) -> Result<Option<DhcpLease>> {
    const IS_PORT: &str = "SELECT 1 FROM ports WHERE address = $1";
    const SAVE: &str = "INSERT INTO leases (mac, address, expires_at, probed) VALUES ($1, $2, $3, 0) \
         ON CONFLICT (mac) DO UPDATE SET address = $2, expires_at = $3, probed = 0";
    connection.lock_bulk_writes().await?;
    let is_port = connection.row(IS_PORT, values![mac.to_string()]).await?.is_some();
    let expires_at =
        (!is_port).then(|| now.checked_add(pool.stranger_lease_time).unwrap_or(Timestamp::MAX));

    let in_use = in_use(connection, now).await?;
    let fits = |address: &Ipv4Addr| {
        (pool.first..=pool.last).contains(address)
            && !pool.reserved.contains(address)
            && !in_use.contains(address)
    };
    if let Some(had) = find(connection, mac).await?.filter(|had| fits(&had.address)) {
        renew(connection, mac, expires_at).await?;
        return Ok(Some(had));
    }

    forget_expired(connection, now).await?;
    let leased = leased_to_others(connection, mac).await?;
    let mut pooled = (u32::from(pool.first)..=u32::from(pool.last)).map(Ipv4Addr::from);
    let mut found = pooled.find(|address| fits(address) && !leased.contains(address));
    if found.is_none() && is_port {
        found = addresses_of_unknown_machines(connection).await?.into_iter().find(fits);
        if let Some(address) = found {
            let taken = values![u32::from(address)];
            connection.execute("DELETE FROM leases WHERE address = $1", taken).await?;
        }
    }
    let Some(address) = found else { return Ok(None) };
    connection.execute(SAVE, values![mac.to_string(), u32::from(address), expires_at]).await?;
    Ok(Some(DhcpLease { address, is_probed: false }))
}

/// Records that probing found the address of `mac` free.
pub(crate) async fn mark_probed(
    connection: &mut Connection,
    mac: MacAddress,
    address: Ipv4Addr,
) -> Result<()> {
    const MARK: &str = "UPDATE leases SET probed = 1 WHERE mac = $1 AND address = $2";
    connection.execute(MARK, values![mac.to_string(), u32::from(address)]).await?;
    Ok(())
}

/// Takes `address` from `mac`, if `mac` has it, and leases it to nobody before `until`. Returns whether `mac` had it.
pub(crate) async fn mark_in_use(
    connection: &mut Connection,
    mac: MacAddress,
    address: Ipv4Addr,
    until: Timestamp,
) -> Result<bool> {
    const TAKE: &str = "DELETE FROM leases WHERE mac = $1 AND address = $2";
    const MARK: &str = "INSERT INTO addresses_in_use (address, until) VALUES ($1, $2) \
         ON CONFLICT (address) DO UPDATE SET until = $2";
    let had = connection.execute(TAKE, values![mac.to_string(), u32::from(address)]).await? > 0;
    if had {
        connection.execute(MARK, values![u32::from(address), until]).await?;
    }
    Ok(had)
}

/// Frees the lease of `mac`, if there is one.
pub(crate) async fn free(connection: &mut Connection, mac: MacAddress) -> Result<()> {
    connection.execute("DELETE FROM leases WHERE mac = $1", values![mac.to_string()]).await?;
    Ok(())
}

/// Extends the lease of an unknown machine, and makes the lease of a MAC address that has become a port endless. Writes only if something
/// changes.
async fn renew(
    connection: &mut Connection,
    mac: MacAddress,
    expires_at: Option<Timestamp>,
) -> Result<()> {
    const FOR_A_TIME: &str = "UPDATE leases SET expires_at = $2 WHERE mac = $1";
    const WITHOUT_END: &str =
        "UPDATE leases SET expires_at = NULL WHERE mac = $1 AND expires_at IS NOT NULL";
    match expires_at {
        Some(at) => connection.execute(FOR_A_TIME, values![mac.to_string(), at]).await?,
        None => connection.execute(WITHOUT_END, values![mac.to_string()]).await?,
    };
    Ok(())
}

/// Deletes expired leases. A lease without an end and without a port was written while its port was being deleted, and is deleted too.
async fn forget_expired(connection: &mut Connection, now: Timestamp) -> Result<()> {
    const FORGET: &str = "DELETE FROM leases WHERE coalesce(expires_at, $1) <= $1 \
         AND NOT EXISTS (SELECT 1 FROM ports WHERE ports.address = leases.mac)";
    connection.execute(FORGET, values![now]).await?;
    connection.execute("DELETE FROM addresses_in_use WHERE until <= $1", values![now]).await?;
    Ok(())
}

async fn in_use(connection: &mut Connection, now: Timestamp) -> Result<BTreeSet<Ipv4Addr>> {
    const IN_USE: &str = "SELECT address FROM addresses_in_use WHERE until > $1";
    connection.rows(IN_USE, values![now]).await?.iter().map(read).collect()
}

async fn leased_to_others(
    connection: &mut Connection,
    mac: MacAddress,
) -> Result<BTreeSet<Ipv4Addr>> {
    const LEASED: &str = "SELECT address FROM leases WHERE mac <> $1";
    connection.rows(LEASED, values![mac.to_string()]).await?.iter().map(read).collect()
}

/// Returns the leased addresses of unknown machines, the one with the oldest request first.
async fn addresses_of_unknown_machines(connection: &mut Connection) -> Result<Vec<Ipv4Addr>> {
    const STRANGERS: &str = "SELECT address FROM leases \
         WHERE NOT EXISTS (SELECT 1 FROM ports WHERE ports.address = leases.mac) ORDER BY expires_at, address";
    connection.rows(STRANGERS, values![]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Ipv4Addr> {
    let number = row.int(0)?;
    u32::try_from(number)
        .map(Ipv4Addr::from)
        .map_err(|error| StoreError::corrupt("leases", &number.to_string(), error))
}
