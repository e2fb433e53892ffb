//! Probes an address before the server offers it: a machine that answers an ICMP echo (RFC 792, RFC 4443 §4) already uses the address.
//!
//! RFC 2131 §3.1 and §4.3.1: a server SHOULD probe a newly leased address in this way before offering it. DHCPv6 does not ask for it: its
//! clients look for the address themselves (RFC 4862 §5.4), but a machine that has another machine's address fails to boot.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::Listen;
use crate::socket::to_tokio;

/// How long a probe waits. Clients wait longer for an offer: iPXE and firmware wait 1 s at first (PXE 2.1 §2.2.1).
const PATIENCE: Duration = Duration::from_millis(500);

/// The numbers of the messages in one version of ICMP.
#[derive(Clone, Copy)]
struct Echo {
    request: u8,
    reply: u8,
}

/// RFC 792.
const V4: Echo = Echo { request: 8, reply: 0 };
/// RFC 4443 §4.1, §4.2.
const V6: Echo = Echo { request: 128, reply: 129 };
/// Payload of our echo requests. It tells our replies from those to other programs.
const PAYLOAD: &[u8] = b"bedplate: is this address free?";

/// Probes addresses on the network of the DHCP service.
#[derive(Clone, Debug)]
pub struct Prober {
    interface: Option<String>,
}

impl Prober {
    /// Makes a prober for the network that DHCP listens on.
    pub fn new<Address>(listen: &Listen<Address>) -> Self {
        match listen {
            Listen::Interface { name, .. } => Prober { interface: Some(name.clone()) },
            Listen::Socket { .. } => Prober { interface: None },
        }
    }

    /// Whether a machine answers at `address` within half a second.
    ///
    /// # Errors
    ///
    /// No echo request can be sent, usually because the kernel requires `CAP_NET_RAW`.
    pub async fn is_used(&self, address: IpAddr) -> io::Result<bool> {
        // RFC 1122 §3.2.1.3: a loopback address is on no network, and this host itself would answer.
        if address.is_loopback() {
            return Ok(false);
        }
        let echo = if address.is_ipv4() { V4 } else { V6 };
        let socket = match self.open(address) {
            Ok(socket) => to_tokio(socket)?,
            Err(error) => return Err(error),
        };
        let asked = async {
            socket.connect((address, 0)).await?;
            socket.send(&echo_request(echo)).await?;
            answer_from(&socket, address, echo).await
        };
        match timeout(PATIENCE, asked).await {
            Ok(Err(error)) if is_unreachable(&error) => Ok(false),
            Ok(asked) => asked,
            Err(_) => Ok(false),
        }
    }

    /// Opens a socket for echo requests: an ICMP datagram socket if the kernel permits it for this user (`net.ipv4.ping_group_range`), a
    /// raw socket otherwise.
    fn open(&self, address: IpAddr) -> io::Result<Socket> {
        let (domain, protocol) = match address {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let open = |kind| {
            let socket = Socket::new(domain, kind, Some(protocol))?;
            if let Some(name) = &self.interface {
                socket.bind_device(Some(name.as_bytes()))?;
            }
            Ok(socket)
        };
        open(Type::DGRAM).or_else(|_: io::Error| open(Type::RAW))
    }
}

/// Waits for the reply of `address` to our echo request; skips other ICMP messages.
async fn answer_from(socket: &UdpSocket, address: IpAddr, echo: Echo) -> io::Result<bool> {
    let mut packet = [0; 256];
    loop {
        let (length, from) = socket.recv_from(&mut packet).await?;
        if from.ip() == address && is_echo_reply(&packet[..length], echo) {
            return Ok(true);
        }
    }
}

/// Whether a packet is a reply to our echo request. A packet from a raw IPv4 socket starts with the IP header, a packet from any other
/// socket does not.
fn is_echo_reply(packet: &[u8], echo: Echo) -> bool {
    let header = match packet.first() {
        // RFC 791 §3.1: the version, 4, then the length of the header in 32-bit words.
        Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
        Some(_) | None => 0,
    };
    let message = packet.get(header..).unwrap_or_default();
    message.first() == Some(&echo.reply) && message.get(8..) == Some(PAYLOAD)
}

/// Builds an echo request: type, code 0, checksum, identifier, sequence number, data. The kernel fills in the checksum of ICMPv6.
fn echo_request(echo: Echo) -> Vec<u8> {
    let mut message = vec![echo.request, 0, 0, 0, 0xbe, 0xd0, 0, 1];
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
        assert_eq!(checksum(&echo_request(V4)), 0);
    }

    #[test]
    fn only_a_reply_to_our_echo_request_counts() {
        for echo in [V4, V6] {
            let mut answer = echo_request(echo);
            assert!(!is_echo_reply(&answer, echo), "a request is no answer");
            answer[0] = echo.reply;
            assert!(is_echo_reply(&answer, echo));
            assert!(!is_echo_reply(&answer[..answer.len() - 1], echo), "it carries something else");
        }
        let mut answer = echo_request(V4);
        answer[0] = V4.reply;
        let mut raw = vec![0; 20];
        raw[0] = 0x45;
        raw.extend(&answer);
        assert!(is_echo_reply(&raw, V4));
        assert!(!is_echo_reply(&[], V4));
    }
}
