//! The tables `leases`, with an address for each MAC address, and `addresses_in_use`, with addresses at which a machine without a lease
//! answers.
//!
//! An address is stored as a number: an IPv4 address as such, an IPv6 address by its last 64 bits. A pool of IPv6 addresses has one prefix of
//! 64 bits, so the pool and the number are the address.
//!
//! The lease of a port lasts as long as the port. The lease of a MAC address without a port (an unknown machine) lasts until `expires_at`.

use baremetal_core::{NamedMachine, NodeUuid};
use database::{Connection, Result, Row, values};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use hardware::MacAddress;
use jiff::Timestamp;

/// The addresses that can be leased: of IPv4, or of one IPv6 prefix of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPool {
    pub first: IpAddr,
    /// The last address, included.
    pub last: IpAddr,
    /// Addresses between `first` and `last` that are never leased.
    pub reserved: Vec<IpAddr>,
    /// How long the lease of an unknown machine lasts after its last request.
    pub stranger_lease_time: Duration,
}

/// The lease of one MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpLease {
    pub address: IpAddr,
    /// Whether probing found the address free. Until then the address must not be given to the machine.
    pub is_probed: bool,
}

/// The number of an address in the database.
type Number = u64;

fn number(address: IpAddr) -> Number {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => u128::from(address) as u64,
    }
}

/// The database has signed numbers of 64 bits.
fn stored(number: Number) -> i64 {
    number.cast_signed()
}

fn read(row: &Row) -> Result<Number> {
    Ok(row.int(0)?.cast_unsigned())
}

impl AddressPool {
    /// Returns the address with this number.
    fn address(&self, number: Number) -> IpAddr {
        match self.first {
            // A number of the pool fits, because it is not greater than the last address's.
            IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
            IpAddr::V6(first) => {
                let prefix = u128::from(first) & !u128::from(u64::MAX);
                Ipv6Addr::from(prefix | u128::from(number)).into()
            }
        }
    }

    fn numbers(&self) -> RangeInclusive<Number> {
        number(self.first)..=number(self.last)
    }
}

/// Returns whether `mac` has a lease, expired or not.
pub(crate) async fn exists(connection: &mut Connection, mac: MacAddress) -> Result<bool> {
    Ok(find(connection, mac).await?.is_some())
}

/// Returns the number of the address that is leased to `mac`, and whether it was probed.
async fn find(connection: &mut Connection, mac: MacAddress) -> Result<Option<(Number, bool)>> {
    const FIND: &str = "SELECT address, probed FROM leases WHERE mac = $1";
    let row = connection.row(FIND, values![mac.to_string()]).await?;
    row.map(|row| Ok((read(&row)?, row.int(1)? != 0))).transpose()
}

/// Counts the leases that have not expired.
pub(crate) async fn count(connection: &mut Connection, now: Timestamp) -> Result<u64> {
    const COUNT: &str = "SELECT count(*) FROM leases WHERE expires_at IS NULL OR expires_at > $1";
    let row = connection.row(COUNT, values![now]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.unsigned_abs())
}

/// Returns the leased addresses of a pool, in their order, without those of expired leases.
pub(crate) async fn leased(
    connection: &mut Connection,
    pool: &AddressPool,
    now: Timestamp,
) -> Result<Vec<IpAddr>> {
    const LEASED: &str = "SELECT address FROM leases WHERE expires_at IS NULL OR expires_at > $1";
    let rows = connection.rows(LEASED, values![now]).await?;
    let numbers: BTreeSet<Number> = rows.iter().map(read).collect::<Result<_>>()?;
    Ok(numbers.range(pool.numbers()).map(|number| pool.address(*number)).collect())
}

/// Returns the nodes with a name whose ports have addresses of the pool, in the order of the names.
pub(crate) async fn named_machines(
    connection: &mut Connection,
    pool: &AddressPool,
) -> Result<Vec<NamedMachine>> {
    const NAMED: &str = "SELECT leases.address, nodes.id, nodes.name FROM leases \
         JOIN ports ON ports.address = leases.mac JOIN nodes ON nodes.id = ports.node \
         WHERE nodes.name IS NOT NULL AND leases.probed <> 0 ORDER BY nodes.name, leases.address";
    let mut machines: Vec<NamedMachine> = Vec::new();
    for row in connection.rows(NAMED, values![]).await? {
        let (number, node): (_, NodeUuid) = (read(&row)?, row.parse("nodes", 1)?);
        if !pool.numbers().contains(&number) {
            continue;
        }
        let address = pool.address(number);
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

/// Leases an address to `mac`: its current address if that is still usable, or else the lowest free address of the pool. The addresses of
/// expired leases are free once all others are leased. If none is free and `mac` belongs to a port, takes the address of the unknown machine
/// whose last request is the oldest. Returns `None` if no address is left.
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
    let reserved: Vec<Number> = pool.reserved.iter().copied().map(number).collect();
    let fits = |number: &Number| {
        pool.numbers().contains(number) && !reserved.contains(number) && !in_use.contains(number)
    };
    if let Some((had, is_probed)) = find(connection, mac).await?.filter(|(had, _)| fits(had)) {
        renew(connection, mac, expires_at).await?;
        return Ok(Some(DhcpLease { address: pool.address(had), is_probed }));
    }

    let blocked: BTreeSet<Number> = reserved.iter().chain(&in_use).copied().collect();
    let mut found = lowest_free(connection, pool, &blocked).await?;
    if found.is_none() {
        // Expired leases are looked for only now, because each lease without an end needs a look at its port.
        forget_expired(connection, now).await?;
        found = lowest_free(connection, pool, &blocked).await?;
    }
    if found.is_none() && is_port {
        found = addresses_of_unknown_machines(connection).await?.into_iter().find(fits);
        if let Some(number) = found {
            let taken = values![stored(number)];
            connection.execute("DELETE FROM leases WHERE address = $1", taken).await?;
        }
    }
    let Some(number) = found else { return Ok(None) };
    connection.execute(SAVE, values![mac.to_string(), stored(number), expires_at]).await?;
    Ok(Some(DhcpLease { address: pool.address(number), is_probed: false }))
}

/// Records that probing found the address of `mac` free.
pub(crate) async fn mark_probed(
    connection: &mut Connection,
    mac: MacAddress,
    address: IpAddr,
) -> Result<()> {
    const MARK: &str = "UPDATE leases SET probed = 1 WHERE mac = $1 AND address = $2";
    connection.execute(MARK, values![mac.to_string(), stored(number(address))]).await?;
    Ok(())
}

/// Takes `address` from `mac`, if `mac` has it, and leases it to nobody before `until`. Returns whether `mac` had it.
pub(crate) async fn mark_in_use(
    connection: &mut Connection,
    mac: MacAddress,
    address: IpAddr,
    until: Timestamp,
) -> Result<bool> {
    const TAKE: &str = "DELETE FROM leases WHERE mac = $1 AND address = $2";
    const MARK: &str = "INSERT INTO addresses_in_use (address, until) VALUES ($1, $2) \
         ON CONFLICT (address) DO UPDATE SET until = $2";
    let had =
        connection.execute(TAKE, values![mac.to_string(), stored(number(address))]).await? > 0;
    if had {
        connection.execute(MARK, values![stored(number(address)), until]).await?;
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

async fn in_use(connection: &mut Connection, now: Timestamp) -> Result<BTreeSet<Number>> {
    const IN_USE: &str = "SELECT address FROM addresses_in_use WHERE until > $1";
    connection.rows(IN_USE, values![now]).await?.iter().map(read).collect()
}

/// Returns the lowest number of the pool that is neither leased nor blocked. The database counts the leases of parts of the pool, because
/// reading thousands of leases would keep other writes waiting for milliseconds.
async fn lowest_free(
    connection: &mut Connection,
    pool: &AddressPool,
    blocked: &BTreeSet<Number>,
) -> Result<Option<Number>> {
    let (mut low, last) = pool.numbers().into_inner();
    if low > last {
        return Ok(None);
    }
    let mut free_of_lease = BTreeSet::new();
    for number in blocked.range(low..=last) {
        if count_between(connection, *number, *number).await? == 0 {
            free_of_lease.insert(*number);
        }
    }
    let taken_without_lease =
        |low: Number, high: Number| free_of_lease.range(low..=high).count() as u64;
    let taken = count_between(connection, low, last).await? + taken_without_lease(low, last);
    if taken > last - low {
        return Ok(None);
    }
    // Among one more number than are taken, one is free. All numbers below `low` are taken.
    let mut high = last.min(low.saturating_add(taken));
    while low < high {
        let middle = low + (high - low) / 2;
        let taken =
            count_between(connection, low, middle).await? + taken_without_lease(low, middle);
        match taken > middle - low {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(Some(low))
}

/// Returns how many of these numbers are leased, expired leases included.
async fn count_between(connection: &mut Connection, low: Number, high: Number) -> Result<u64> {
    const BETWEEN: &str = "SELECT count(*) FROM leases WHERE address BETWEEN $1 AND $2";
    // The numbers from 2^63 on are negative in the database.
    const AROUND: &str = "SELECT count(*) FROM leases WHERE address >= $1 OR address <= $2";
    let (low, high) = (stored(low), stored(high));
    let sql = if low <= high { BETWEEN } else { AROUND };
    let row = connection.row(sql, values![low, high]).await?;
    Ok(row.map(|row| row.int(0)).transpose()?.unwrap_or_default().unsigned_abs())
}

/// Returns the leased addresses of unknown machines, the one with the oldest request first.
async fn addresses_of_unknown_machines(connection: &mut Connection) -> Result<Vec<Number>> {
    const STRANGERS: &str = "SELECT address FROM leases \
         WHERE NOT EXISTS (SELECT 1 FROM ports WHERE ports.address = leases.mac) ORDER BY expires_at, address";
    connection.rows(STRANGERS, values![]).await?.iter().map(read).collect()
}
