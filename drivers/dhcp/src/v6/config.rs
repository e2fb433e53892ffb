//! The settings of the server.

use std::net::Ipv6Addr;
use std::time::Duration;

use ipnet::Ipv6Net;
use uuid::Builder;

/// The settings that are the same for all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Our own address: the server of the boot files.
    pub address: Ipv6Addr,
    /// The subnet that contains all leases.
    pub subnet: Ipv6Net,
    pub dns: Vec<Ipv6Addr>,
    pub lease_time: Duration,
}

impl ServerConfig {
    /// Returns the DUID of the server.
    pub fn identifier(&self) -> Vec<u8> {
        server_identifier(self.address)
    }
}

/// Returns the DUID of our server at this address. It is made of the address, so it stays the same after a restart and differs from the
/// DUIDs of other servers on the link.
pub fn server_identifier(address: Ipv6Addr) -> Vec<u8> {
    // RFC 6355 §4: type 4 and a UUID. RFC 9562 §5.8: version 8 is for UUIDs of one's own making.
    let uuid = Builder::from_custom_bytes(address.octets()).into_uuid();
    [&[0, 4][..], uuid.as_bytes()].concat()
}
