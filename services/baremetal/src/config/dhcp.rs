//! The sections `[provisioning.dhcp]` and `[bmc.dhcp]`: where DHCP is received, and which addresses are leased. The address of the server
//! tells whether the provisioning network has IPv4 or IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use baremetal_core::DnsZone;
use ipnet::{Ipv4Net, Ipv6Net};
use jiff::SignedDuration;
use pxe::Listen;
use serde::Deserialize;

/// The DHCP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawDhcp")]
pub enum DhcpConfig {
    V4(DhcpV4Config),
    V6(DhcpV6Config),
}

/// The DHCP server of a network with IPv4.
#[derive(Clone, Debug)]
pub struct DhcpV4Config {
    /// Where requests are received, and the address that machines are told as the server's.
    pub listen: Listen<Ipv4Addr>,
    /// The service's own address on the provisioning network.
    pub server: Ipv4Addr,
    /// Whether the server leases addresses.
    pub mode: DhcpMode,
    /// The provisioning network.
    pub network: Ipv4Net,
    /// The default gateway.
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    /// The domain of the clients' host names. A node's host name is its name.
    pub domain: Option<String>,
    /// How long a lease lasts.
    pub lease_time: Duration,
}

/// The DHCP server on the network of BMCs, which leases addresses and tells no boot file.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "DhcpConfig")]
pub struct BmcDhcpConfig(pub DhcpV4Config);

/// The DHCPv6 server of a network with IPv6. Routers advertise themselves.
#[derive(Clone, Debug)]
pub struct DhcpV6Config {
    /// Where requests are received, and the address that machines are told as the server's.
    pub listen: Listen<Ipv6Addr>,
    /// The service's own address on the provisioning network.
    pub server: Ipv6Addr,
    /// The first leased address.
    pub first: Ipv6Addr,
    /// The last leased address, included.
    pub last: Ipv6Addr,
    /// The provisioning network.
    pub network: Ipv6Net,
    pub dns: Vec<Ipv6Addr>,
    /// How long a lease lasts.
    pub lease_time: Duration,
}

/// Whether the DHCP server leases addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DhcpMode {
    /// The server leases the addresses of this range.
    Full {
        first: Ipv4Addr,
        /// The last address, included.
        last: Ipv4Addr,
    },
    /// Another server leases addresses; this server only sends boot files.
    Proxy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDhcp {
    interface: Option<String>,
    listen: Option<SocketAddr>,
    server: IpAddr,
    #[serde(default)]
    mode: RawMode,
    range: Option<String>,
    prefix: u8,
    router: Option<IpAddr>,
    #[serde(default)]
    dns: Vec<IpAddr>,
    domain: Option<DnsZone>,
    lease_time: Option<SignedDuration>,
}

#[derive(Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum RawMode {
    #[default]
    Full,
    Proxy,
}

/// Why the section is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDhcp {
    #[error("set either interface or listen")]
    Listen,
    #[error("set range = \"FIRST-LAST\", or mode = \"proxy\"")]
    NoRange,
    #[error("set range = \"FIRST-LAST\"")]
    NoV6Range,
    /// The range is malformed, or not within the server's network.
    #[error("range: {raw:?} is not FIRST-LAST of addresses in the server's own /{prefix} network")]
    Range { raw: String, prefix: u8 },
    #[error("prefix: must be from 8 to 30")]
    Prefix,
    /// ProxyDHCP tells boot files only.
    #[error("mode: a BMC boots nothing, so the server has to lease addresses; set range")]
    NothingToBoot,
    /// The crawl for BMCs asks IPv4 addresses.
    #[error("server: must be an IPv4 address on the network of BMCs")]
    BmcVersion,
    /// Leases have one prefix of 64 bits.
    #[error("prefix: must be from 64 to 126 for IPv6")]
    V6Prefix,
    #[error("{field}: must be of the same version of IP as server")]
    Version { field: &'static str },
    /// DHCPv6 has nothing like ProxyDHCP.
    #[error("mode: \"proxy\" is for IPv4 only")]
    V6Proxy,
    #[error("router: is for IPv4 only; a router of IPv6 advertises itself")]
    V6Router,
    #[error("domain: is for IPv4 only")]
    V6Domain,
}

impl TryFrom<DhcpConfig> for BmcDhcpConfig {
    type Error = InvalidDhcp;

    fn try_from(config: DhcpConfig) -> Result<Self, InvalidDhcp> {
        match config {
            DhcpConfig::V4(config) => match config.mode {
                DhcpMode::Full { .. } => Ok(BmcDhcpConfig(config)),
                DhcpMode::Proxy => Err(InvalidDhcp::NothingToBoot),
            },
            DhcpConfig::V6(_) => Err(InvalidDhcp::BmcVersion),
        }
    }
}

impl TryFrom<RawDhcp> for DhcpConfig {
    type Error = InvalidDhcp;

    fn try_from(raw: RawDhcp) -> Result<Self, InvalidDhcp> {
        match raw.server {
            IpAddr::V4(server) => Ok(DhcpConfig::V4(v4(raw, server)?)),
            IpAddr::V6(server) => Ok(DhcpConfig::V6(v6(raw, server)?)),
        }
    }
}

fn v4(raw: RawDhcp, server: Ipv4Addr) -> Result<DhcpV4Config, InvalidDhcp> {
    let version = |field| InvalidDhcp::Version { field };
    let network = Ipv4Net::new(server, raw.prefix).ok();
    let network = network.filter(|network| (8..=30).contains(&network.prefix_len()));
    let network = network.ok_or(InvalidDhcp::Prefix)?;
    let mode = match raw.mode {
        RawMode::Proxy => DhcpMode::Proxy,
        RawMode::Full => {
            let text = raw.range.as_deref().ok_or(InvalidDhcp::NoRange)?;
            let range = range(text, |address: &Ipv4Addr| network.contains(address));
            let (first, last) = range.ok_or(out_of_range(text, raw.prefix))?;
            DhcpMode::Full { first, last }
        }
    };
    let router = match raw.router {
        Some(router) => Some(in_v4(router).ok_or(version("router"))?),
        None => None,
    };
    let dns = raw.dns.iter().map(|address| in_v4(*address).ok_or(version("dns")));
    Ok(DhcpV4Config {
        lease_time: lease_time(&raw),
        dns: dns.collect::<Result<_, _>>()?,
        listen: listen(raw.interface, raw.listen, server, in_v4)?,
        server,
        mode,
        network,
        router,
        domain: raw.domain.map(|zone| zone.as_str().trim_end_matches('.').to_owned()),
    })
}

fn v6(raw: RawDhcp, server: Ipv6Addr) -> Result<DhcpV6Config, InvalidDhcp> {
    if raw.mode == RawMode::Proxy {
        return Err(InvalidDhcp::V6Proxy);
    }
    if raw.router.is_some() {
        return Err(InvalidDhcp::V6Router);
    }
    if raw.domain.is_some() {
        return Err(InvalidDhcp::V6Domain);
    }
    let network = Ipv6Net::new(server, raw.prefix).ok();
    let network = network.filter(|network| (64..=126).contains(&network.prefix_len()));
    let network = network.ok_or(InvalidDhcp::V6Prefix)?;
    let text = raw.range.as_deref().ok_or(InvalidDhcp::NoV6Range)?;
    let range = range(text, |address: &Ipv6Addr| network.contains(address));
    let (first, last) = range.ok_or(out_of_range(text, raw.prefix))?;
    let version = InvalidDhcp::Version { field: "dns" };
    let dns = raw.dns.iter().map(|address| in_v6(*address).ok_or(version.clone()));
    Ok(DhcpV6Config {
        lease_time: lease_time(&raw),
        dns: dns.collect::<Result<_, _>>()?,
        listen: listen(raw.interface, raw.listen, server, in_v6)?,
        server,
        first,
        last,
        network,
    })
}

fn in_v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn in_v6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}

fn lease_time(raw: &RawDhcp) -> Duration {
    raw.lease_time.unwrap_or(SignedDuration::from_hours(1)).unsigned_abs()
}

/// Returns where requests are received: on an interface with broadcasts or multicasts, or on a socket from relays.
fn listen<Address>(
    interface: Option<String>,
    socket: Option<SocketAddr>,
    server: Address,
    version: impl Fn(IpAddr) -> Option<Address>,
) -> Result<Listen<Address>, InvalidDhcp> {
    match (interface, socket) {
        (Some(name), None) => Ok(Listen::Interface { name, address: server }),
        (None, Some(socket)) => match version(socket.ip()) {
            Some(address) => Ok(Listen::Socket { address, port: socket.port() }),
            None => Err(InvalidDhcp::Version { field: "listen" }),
        },
        (None, None) | (Some(_), Some(_)) => Err(InvalidDhcp::Listen),
    }
}

fn range<Address: FromStr + Ord>(
    text: &str,
    within: impl Fn(&Address) -> bool,
) -> Option<(Address, Address)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (Address, Address) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (within(&first) && within(&last) && first <= last).then_some((first, last))
}

fn out_of_range(raw: &str, prefix: u8) -> InvalidDhcp {
    InvalidDhcp::Range { raw: raw.to_owned(), prefix }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::config::tests::check;

    fn dhcp(section: &str) -> String {
        format!(
            "state_dir = '/tmp/s'\n[provisioning]\nlisten = '10.0.0.1:6386'\nkernel = 'k'\nramdisk = 'r'\n\
             [provisioning.dhcp]\n{section}"
        )
    }

    #[test]
    fn a_contradictory_dhcp_section_is_refused() {
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24\nrange='10.0.0.10-10.0.0.99'"),
            expect!["ok"],
        );
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24\nrange='10.0.1.10-10.0.1.99'"),
            expect![[
                r#"range: "10.0.1.10-10.0.1.99" is not FIRST-LAST of addresses in the server's own /24 network"#
            ]],
        );
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24"),
            expect![[r#"set range = "FIRST-LAST", or mode = "proxy""#]],
        );
        check(
            &dhcp("server='10.0.0.1'\nprefix=24\nmode='proxy'"),
            expect!["set either interface or listen"],
        );
    }

    #[test]
    fn bmcs_get_addresses_and_no_boot_file() {
        let section =
            "state_dir = '/tmp/s'\n[bmc.dhcp]\ninterface='bmc0'\nserver='10.0.1.1'\nprefix=24\n";
        check(&format!("{section}range='10.0.1.10-10.0.1.99'"), expect!["ok"]);
        check(
            &format!("{section}mode='proxy'"),
            expect!["mode: a BMC boots nothing, so the server has to lease addresses; set range"],
        );
        check(
            "state_dir = '/tmp/s'\n[bmc.dhcp]\ninterface='bmc0'\nserver='fd78::1'\nprefix=64\nrange='fd78::2-fd78::3'",
            expect!["server: must be an IPv4 address on the network of BMCs"],
        );
    }

    #[test]
    fn an_ipv6_network_has_its_own_rules() {
        let section =
            |more: &str| dhcp(&format!("interface='br0'\nserver='fd78::1'\nprefix=64\n{more}"));
        check(&section("range='fd78::100-fd78::1ff'\ndns=['fd78::2']"), expect!["ok"]);
        check(&section(""), expect![[r#"set range = "FIRST-LAST""#]]);
        check(
            &section("range='fd78::100-fd79::1ff'"),
            expect![[
                r#"range: "fd78::100-fd79::1ff" is not FIRST-LAST of addresses in the server's own /64 network"#
            ]],
        );
        let range = "range='fd78::100-fd78::1ff'";
        check(
            &section(&format!("{range}\ndns=['10.0.0.1']")),
            expect!["dns: must be of the same version of IP as server"],
        );
        check(
            &section(&format!("{range}\nrouter='fd78::fe'")),
            expect!["router: is for IPv4 only; a router of IPv6 advertises itself"],
        );
        check(
            &section(&format!("{range}\ndomain='machines.example'")),
            expect!["domain: is for IPv4 only"],
        );
        check(&section("mode='proxy'"), expect![[r#"mode: "proxy" is for IPv4 only"#]]);
        check(
            &dhcp("listen='10.0.0.1:547'\nserver='fd78::1'\nprefix=64\nrange='fd78::2-fd78::3'"),
            expect!["listen: must be of the same version of IP as server"],
        );
        check(
            &dhcp("interface='br0'\nserver='fd78::1'\nprefix=48\nrange='fd78::2-fd78::3'"),
            expect!["prefix: must be from 64 to 126 for IPv6"],
        );
    }
}
