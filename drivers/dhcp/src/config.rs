//! The settings of the server.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

/// The settings that are the same for all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    pub mode: Mode,
    /// Our own address: the server identifier and, unless `tftp_server` is set, the server of the boot files.
    pub address: Ipv4Addr,
    /// The server of the boot files, if not `address`.
    pub tftp_server: Option<Ipv4Addr>,
    /// The subnet that contains all leases.
    pub subnet: Ipv4Net,
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
