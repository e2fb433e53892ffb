//! Who knows the machines: asked before anything is answered, told what was seen.

use std::net::Ipv4Addr;

use async_trait::async_trait;
use dhcp::{Client, Decision};
use hardware::MacAddress;

/// What the network-boot services ask before they answer a machine.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// What to answer this client. Asked for every message; the client retries after a few
    /// seconds, so a slow answer is no answer.
    async fn decide(&self, client: &Client) -> Decision;

    /// A client found another machine at the address it was given (RFC 2131 §4.3.3).
    async fn declined(&self, client: MacAddress, address: Ipv4Addr);

    /// Something was seen on the wire: for explanations, never for decisions. Must not block.
    fn saw(&self, client: MacAddress, sighting: Sighting);
}

/// Something a machine did, or that was done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// It looks for a DHCP server.
    DhcpDiscover,
    /// It was made an offer.
    DhcpOffered {
        /// The address; `None` beside another server.
        address: Option<Ipv4Addr>,
        /// The boot file name or URL.
        boot_file: Option<String>,
    },
    /// It asked by DHCP and was refused, or got no answer.
    DhcpRefused {
        /// Why.
        reason: String,
    },
    /// Its address was confirmed, or it was told its boot file once it had one.
    DhcpAcked {
        /// The address it has.
        address: Ipv4Addr,
    },
    /// It found that someone else uses the address it was given.
    DhcpDeclined {
        /// The address.
        address: Option<Ipv4Addr>,
    },
    /// It began to load a file by TFTP.
    TftpRead {
        /// The file.
        file: String,
    },
    /// It has loaded the file.
    TftpDone {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// It did not get the file.
    TftpFailed {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
}
