//! The interface to the owner of the machines: the services ask it before each answer, and report to it what they observe.

use std::net::IpAddr;

use async_trait::async_trait;
use dhcp::{Client, Decision};
use hardware::MacAddress;

/// The owner of the machines, whom the network-boot services ask before they answer a machine.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Decides the answer to this client. Called for every message. The client retries after a few seconds, so a slow answer is lost.
    async fn decide(&self, client: &Client) -> Decision;

    /// A client found another machine at the address it was given (RFC 2131 §4.3.3, RFC 8415 §18.3.8).
    async fn declined(&self, client: MacAddress, address: IpAddr);

    /// Reports an observation. It serves explanations, never decisions. Must not block.
    fn saw(&self, client: MacAddress, sighting: Observation);
}

/// An observation of a machine on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The machine sent a DHCP discover, or a DHCPv6 solicit.
    DhcpDiscover,
    /// The machine got an offer.
    DhcpOffered {
        /// `None` if another server gives addresses.
        address: Option<IpAddr>,
        /// The boot file name or URL.
        boot_file: Option<String>,
    },
    /// The machine's DHCP request was refused, or got no answer.
    DhcpRefused { reason: String },
    /// The machine's address was confirmed, or a machine with an address was told its boot file.
    DhcpAcked { address: IpAddr },
    /// The machine found that another machine uses the address it was given.
    DhcpDeclined { address: Option<IpAddr> },
    /// The machine began to load a file by TFTP.
    TftpRead { file: String },
    /// The machine has loaded the file.
    TftpDone { file: String, bytes: u64 },
    /// The transfer of the file failed.
    TftpFailed { file: String, reason: String },
}
