//! The settings of the server, and the subnet that it serves.

use std::net::Ipv4Addr;
use std::time::Duration;

/// The settings that are the same for all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    pub mode: Mode,
    /// Our own address: the server identifier and, unless `tftp_server` is set, the server of the boot files.
    pub address: Ipv4Addr,
    /// The server of the boot files, if not `address`.
    pub tftp_server: Option<Ipv4Addr>,
    /// The subnet that contains all leases.
    pub subnet: Subnet,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    pub domain: Option<String>,
    pub lease_time: Duration,
}

/// The server that gives addresses to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This server gives the addresses; no other DHCP server may be on the network.
    Full,
    /// Another server gives the addresses; this server only adds the boot file (PXE 2.1 §2.2.3, "ProxyDHCP").
    Proxy,
}

/// An IPv4 subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Any address in the subnet.
    pub address: Ipv4Addr,
    /// The prefix length; a value above 32 counts as 32.
    pub prefix: u8,
}

impl Subnet {
    /// Returns the subnet mask.
    pub fn mask(self) -> Ipv4Addr {
        let host_bits = 32 - u32::from(self.prefix.min(32));
        Ipv4Addr::from(u32::MAX.checked_shl(host_bits).unwrap_or(0))
    }

    /// Whether `address` lies in the subnet.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.mask() & address == self.mask() & self.address
    }

    /// Returns the last address, the broadcast address.
    pub fn broadcast(self) -> Ipv4Addr {
        self.address | !self.mask()
    }
}
