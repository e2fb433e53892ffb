//! Settings of the network-boot services.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use dhcp::{Mode, ServerConfig, v6};
use ipnet::{Ipv4Net, Ipv6Net};

/// The services to run. A service that is `None` opens no socket and needs no privilege.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// A full DHCP server or a ProxyDHCP server.
    pub dhcp: Option<DhcpConfig>,
    /// A DHCPv6 server.
    pub dhcp_v6: Option<DhcpV6Config>,
    /// TFTP, for reading only.
    pub tftp: Option<TftpConfig>,
    /// Answers to IPv6 router solicitations.
    pub router_advertisements: Option<RouterAdvertisementConfig>,
}

/// Settings of the DHCP server.
#[derive(Clone, Debug)]
pub struct DhcpConfig {
    pub listen: Listen<Ipv4Addr>,
    pub mode: Mode,
    pub subnet: Ipv4Net,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    pub domain: Option<String>,
    pub lease_time: Duration,
    /// The server of the boot files, if not our own address.
    pub tftp_server: Option<Ipv4Addr>,
}

/// Settings of the DHCPv6 server.
#[derive(Clone, Debug)]
pub struct DhcpV6Config {
    pub listen: Listen<Ipv6Addr>,
    pub subnet: Ipv6Net,
    pub dns: Vec<Ipv6Addr>,
    pub lease_time: Duration,
}

/// The socket for DHCP requests, with an IPv4 or IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen<Address> {
    /// The server's port of a network interface, broadcasts or multicasts included: 67, and 4011 for ProxyDHCP; 547 of DHCPv6. Needs
    /// `CAP_NET_BIND_SERVICE` and `CAP_NET_RAW`.
    Interface {
        name: String,
        /// Our address on the interface.
        address: Address,
    },
    /// A socket that only relays and clients with an address can reach. Clients are told its address as the server's, so it must not be
    /// unspecified. Port 0 takes a free port; ProxyDHCP's second port, otherwise 4011, is then a free port too.
    Socket { address: Address, port: u16 },
}

/// Settings of the TFTP server.
#[derive(Clone, Debug)]
pub struct TftpConfig {
    /// The socket for requests: usually port 69 of our address on the provisioning network.
    ///
    /// With an unspecified address, the kernel chooses the source address of answers. On a host with several addresses, that address may
    /// differ from the one that the client asked.
    pub listen: SocketAddr,
    /// The files that clients can read.
    pub files: TftpFiles,
    /// The number of transfers that may run at once. Requests beyond the limit are dropped, and the clients retry.
    pub sessions: usize,
    /// Limits of a single transfer.
    pub limits: tftp::Limits,
}

/// The files that clients can read, in memory. A name is only looked up in a map, so no path leads to other files.
#[derive(Clone, Debug, Default)]
pub struct TftpFiles(HashMap<String, Bytes>);

/// Settings of router advertisements on one interface. Needs `CAP_NET_RAW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterAdvertisementConfig {
    pub interface: String,
    /// The network whose addresses machines get by DHCPv6; `None` if machines boot over IPv4 only.
    pub managed: Option<Ipv6Net>,
}

impl TftpFiles {
    /// Makes an empty set.
    pub fn new() -> Self {
        TftpFiles::default()
    }

    /// Adds a file.
    pub fn insert(&mut self, name: impl Into<String>, content: impl Into<Bytes>) {
        self.0.insert(name.into(), content.into());
    }

    /// Adds a file and reads its content now.
    pub fn load(&mut self, name: impl Into<String>, path: &Path) -> io::Result<()> {
        self.insert(name, std::fs::read(path)?);
        Ok(())
    }

    /// Returns the file of this name. A leading slash is ignored, because some firmware sends one.
    pub(crate) fn find(&self, name: &str) -> Option<Bytes> {
        self.0.get(name.trim_start_matches('/')).cloned()
    }
}

impl DhcpConfig {
    /// Returns the settings for `dhcp`'s rules.
    pub(crate) fn server(&self) -> ServerConfig {
        ServerConfig {
            mode: self.mode,
            address: self.listen.address(),
            tftp_server: self.tftp_server,
            subnet: self.subnet,
            router: self.router,
            dns: self.dns.clone(),
            domain: self.domain.clone(),
            lease_time: self.lease_time,
        }
    }
}

impl DhcpV6Config {
    /// Returns the settings for `dhcp`'s rules.
    pub(crate) fn server(&self) -> v6::ServerConfig {
        v6::ServerConfig {
            address: self.listen.address(),
            subnet: self.subnet,
            dns: self.dns.clone(),
            lease_time: self.lease_time,
        }
    }
}

impl<Address: Copy> Listen<Address> {
    /// Our address, as clients are told.
    pub fn address(&self) -> Address {
        match self {
            Listen::Interface { address, .. } | Listen::Socket { address, .. } => *address,
        }
    }
}
