//! What to serve, and where.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use dhcp::{Mode, ServerConfig, Subnet};

/// The services to run; what is `None` is not run and needs no privilege.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// DHCP, full or beside another server.
    pub dhcp: Option<DhcpConfig>,
    /// TFTP, read only.
    pub tftp: Option<TftpConfig>,
    /// Answers to IPv6 router solicitations.
    pub router_advertisements: Option<RouterAdvertisementConfig>,
}

/// One DHCP server.
#[derive(Clone, Debug)]
pub struct DhcpConfig {
    /// Where requests come in.
    pub listen: Listen,
    /// Whether we give addresses.
    pub mode: Mode,
    /// The subnet of the leases.
    pub subnet: Subnet,
    /// Its router.
    pub router: Option<Ipv4Addr>,
    /// Its name servers.
    pub dns: Vec<Ipv4Addr>,
    /// Its domain.
    pub domain: Option<String>,
    /// How long a lease holds.
    pub lease_time: Duration,
    /// Where boot files are, if not at our own address.
    pub tftp_server: Option<Ipv4Addr>,
}

/// Where DHCP requests come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Port 67 of a network interface, broadcasts included; ProxyDHCP also on port 4011.
    /// Needs `CAP_NET_BIND_SERVICE` and `CAP_NET_RAW`.
    Interface {
        /// The interface.
        name: String,
        /// Our address on it.
        address: Ipv4Addr,
    },
    /// A socket that only relays and clients with an address can reach. Its address is told to
    /// clients as ours and must not be unspecified; port 0 takes a free one. ProxyDHCP's second
    /// port, elsewhere 4011, is then a free one too.
    Socket(SocketAddrV4),
}

/// One TFTP server.
#[derive(Clone, Debug)]
pub struct TftpConfig {
    /// Where requests come in: customarily port 69 of our address on the provisioning network.
    ///
    /// An unspecified address answers from the one the kernel chooses, which on a host with
    /// several may not be the one the client asked.
    pub listen: SocketAddr,
    /// What can be read.
    pub files: TftpFiles,
    /// How many transfers may run at once; requests beyond that are dropped, and clients ask again.
    pub sessions: usize,
    /// What one transfer may take.
    pub limits: tftp::Limits,
}

/// The files that can be read. Names are looked up, never resolved: there is no path to walk out of.
#[derive(Clone, Debug, Default)]
pub struct TftpFiles(HashMap<String, Bytes>);

/// Router advertisements on one interface. Needs `CAP_NET_RAW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterAdvertisementConfig {
    /// The interface.
    pub interface: String,
}

impl TftpFiles {
    /// No files.
    pub fn new() -> Self {
        TftpFiles::default()
    }

    /// Adds a file.
    pub fn insert(&mut self, name: impl Into<String>, content: impl Into<Bytes>) {
        self.0.insert(name.into(), content.into());
    }

    /// Adds a file, reading its content now.
    pub fn load(&mut self, name: impl Into<String>, path: &Path) -> io::Result<()> {
        self.insert(name, std::fs::read(path)?);
        Ok(())
    }

    /// The file with this name; firmware that asks for it with a leading slash means the same.
    pub(crate) fn find(&self, name: &str) -> Option<Bytes> {
        self.0.get(name.trim_start_matches('/')).cloned()
    }
}

impl DhcpConfig {
    /// What the rules of answering need to know.
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

impl Listen {
    /// Our address, as clients are told.
    pub fn address(&self) -> Ipv4Addr {
        match self {
            Listen::Interface { address, .. } => *address,
            Listen::Socket(socket) => *socket.ip(),
        }
    }
}
