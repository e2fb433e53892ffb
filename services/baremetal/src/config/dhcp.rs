//! The sections `[provisioning.dhcp]` and `[bmc.dhcp]`: where DHCP is received, and which addresses are leased.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use baremetal_core::DnsZone;
use ipnet::Ipv4Net;
use jiff::SignedDuration;
use serde::Deserialize;

/// The DHCP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawDhcp")]
pub struct DhcpConfig {
    pub listen: DhcpListen,
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
pub struct BmcDhcpConfig(pub DhcpConfig);

/// Where DHCP requests are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DhcpListen {
    /// On a network interface, including broadcasts.
    Interface(String),
    /// On a socket, from relays.
    Socket(SocketAddrV4),
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
    listen: Option<SocketAddrV4>,
    server: Ipv4Addr,
    #[serde(default)]
    mode: RawMode,
    range: Option<String>,
    prefix: u8,
    router: Option<Ipv4Addr>,
    #[serde(default)]
    dns: Vec<Ipv4Addr>,
    domain: Option<DnsZone>,
    lease_time: Option<SignedDuration>,
}

#[derive(Default, Deserialize)]
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
    #[error("range: {raw:?} is not FIRST-LAST of addresses in the server's own /{prefix} network")]
    Range { raw: String, prefix: u8 },
    #[error("prefix: must be from 8 to 30")]
    Prefix,
    /// ProxyDHCP tells boot files only.
    #[error("mode: a BMC boots nothing, so the server has to lease addresses; set range")]
    NothingToBoot,
}

impl TryFrom<DhcpConfig> for BmcDhcpConfig {
    type Error = InvalidDhcp;

    fn try_from(config: DhcpConfig) -> Result<Self, InvalidDhcp> {
        match config.mode {
            DhcpMode::Full { .. } => Ok(BmcDhcpConfig(config)),
            DhcpMode::Proxy => Err(InvalidDhcp::NothingToBoot),
        }
    }
}

impl TryFrom<RawDhcp> for DhcpConfig {
    type Error = InvalidDhcp;

    fn try_from(raw: RawDhcp) -> Result<Self, InvalidDhcp> {
        let listen = match (raw.interface, raw.listen) {
            (Some(interface), None) => DhcpListen::Interface(interface),
            (None, Some(address)) => DhcpListen::Socket(address),
            (None, None) | (Some(_), Some(_)) => return Err(InvalidDhcp::Listen),
        };
        let network = Ipv4Net::new(raw.server, raw.prefix).ok();
        let network = network.filter(|network| (8..=30).contains(&network.prefix_len()));
        let network = network.ok_or(InvalidDhcp::Prefix)?;
        let mode = match raw.mode {
            RawMode::Proxy => DhcpMode::Proxy,
            RawMode::Full => {
                let text = raw.range.ok_or(InvalidDhcp::NoRange)?;
                let (first, last) = range(&text, network)
                    .ok_or(InvalidDhcp::Range { raw: text, prefix: raw.prefix })?;
                DhcpMode::Full { first, last }
            }
        };
        let lease_time = raw.lease_time.unwrap_or(SignedDuration::from_hours(1)).unsigned_abs();
        Ok(DhcpConfig {
            listen,
            server: raw.server,
            mode,
            network,
            router: raw.router,
            dns: raw.dns,
            domain: raw.domain.map(|zone| zone.as_str().trim_end_matches('.').to_owned()),
            lease_time,
        })
    }
}

fn range(text: &str, network: Ipv4Net) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (Ipv4Addr, Ipv4Addr) =
        (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let within = network.contains(&first) && network.contains(&last);
    (within && first <= last).then_some((first, last))
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
    }
}
