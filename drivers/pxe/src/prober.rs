//! Probes an address before the server offers it: a machine that answers an ICMP echo (RFC 792) already uses the address.
//!
//! RFC 2131 §3.1 and §4.3.1: a server SHOULD probe a newly leased address in this way before offering it.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::Listen;
use crate::socket::to_tokio;

/// How long a probe waits. Clients wait longer for an offer: iPXE and firmware wait 1 s at first (PXE 2.1 §2.2.1).
const PATIENCE: Duration = Duration::from_millis(500);

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// Payload of our echo requests. It tells our replies from those to other programs.
const PAYLOAD: &[u8] = b"bedplate: is this address free?";

/// Probes addresses on the network of the DHCP service.
#[derive(Clone, Debug)]
pub struct Prober {
    interface: Option<String>,
}

impl Prober {
    /// Makes a prober for the network that DHCP listens on.
    pub fn new(listen: &Listen) -> Self {
        match listen {
            Listen::Interface { name, .. } => Prober { interface: Some(name.clone()) },
            Listen::Socket(_) => Prober { interface: None },
        }
    }

    /// Whether a machine answers at `address` within half a second.
    ///
    /// # Errors
    ///
    /// No echo request can be sent, usually because the kernel requires `CAP_NET_RAW`.
    pub async fn is_used(&self, address: Ipv4Addr) -> io::Result<bool> {
        // RFC 1122 §3.2.1.3: a loopback address is on no network, and this host itself would answer.
        if address.is_loopback() {
            return Ok(false);
        }
        let socket = match self.open() {
            Ok(socket) => to_tokio(socket)?,
            Err(error) => return Err(error),
        };
        let asked = async {
            socket.connect((address, 0)).await?;
            socket.send(&echo_request()).await?;
            answer_from(&socket, address).await
        };
        match timeout(PATIENCE, asked).await {
            Ok(Err(error)) if is_unreachable(&error) => Ok(false),
            Ok(asked) => asked,
            Err(_) => Ok(false),
        }
    }

    /// Opens a socket for echo requests: an ICMP datagram socket if the kernel permits it for this user (`net.ipv4.ping_group_range`), a
    /// raw socket otherwise.
    fn open(&self) -> io::Result<Socket> {
        let open = |kind| {
            let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4))?;
            if let Some(name) = &self.interface {
                socket.bind_device(Some(name.as_bytes()))?;
            }
            Ok(socket)
        };
        open(Type::DGRAM).or_else(|_: io::Error| open(Type::RAW))
    }
}

/// Waits for the reply of `address` to our echo request; skips other ICMP messages.
async fn answer_from(socket: &UdpSocket, address: Ipv4Addr) -> io::Result<bool> {
    let mut packet = [0; 256];
    loop {
        let (length, from) = socket.recv_from(&mut packet).await?;
        if is_from(from, address) && is_echo_reply(&packet[..length]) {
            return Ok(true);
        }
    }
}

fn is_from(from: SocketAddr, address: Ipv4Addr) -> bool {
    from.ip() == IpAddr::V4(address)
}

/// Whether a packet is a reply to our echo request. A packet from a raw socket starts with the IP header, a packet from an ICMP datagram
/// socket does not.
fn is_echo_reply(packet: &[u8]) -> bool {
    let header = match packet.first() {
        // RFC 791 §3.1: the version, 4, then the length of the header in 32-bit words.
        Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
        Some(_) | None => 0,
    };
    let message = packet.get(header..).unwrap_or_default();
    message.first() == Some(&ECHO_REPLY) && message.get(8..) == Some(PAYLOAD)
}

/// Builds an echo request (RFC 792): type 8, code 0, checksum, identifier, sequence number, data.
fn echo_request() -> Vec<u8> {
    let mut message = vec![ECHO_REQUEST, 0, 0, 0, 0xbe, 0xd0, 0, 1];
    message.extend(PAYLOAD);
    let checksum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    message
}

/// Computes the checksum of RFC 1071: the ones' complement of the ones' complement sum of the 16-bit words.
fn checksum(message: &[u8]) -> u16 {
    let word = |pair: &[u8]| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    };
    let mut sum: u32 = message.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Whether the error means that no route leads to the address or that no machine answers ARP for it.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_request_has_a_valid_checksum() {
        assert_eq!(checksum(&echo_request()), 0);
    }

    #[test]
    fn only_a_reply_to_our_echo_request_counts() {
        let mut answer = echo_request();
        assert!(!is_echo_reply(&answer), "a request is no answer");
        answer[0] = ECHO_REPLY;
        assert!(is_echo_reply(&answer));
        let mut raw = vec![0; 20];
        raw[0] = 0x45;
        raw.extend(&answer);
        assert!(is_echo_reply(&raw));
        assert!(!is_echo_reply(&answer[..answer.len() - 1]), "it carries something else");
        assert!(!is_echo_reply(&[]));
    }
}
