//! A machine that speaks DHCP through a relay on this host, written by hand (RFC 2131, RFC 3046, RFC 3527, RFC 8357).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hardware::MacAddress;
use tokio::net::UdpSocket;
use tokio::time::timeout;

pub(crate) const DISCOVER: u8 = 1;
pub(crate) const OFFER: u8 = 2;
pub(crate) const REQUEST: u8 = 3;
pub(crate) const DECLINE: u8 = 4;
pub(crate) const ACK: u8 = 5;

/// Longer than probing several addresses takes. A missing answer is not awaited any longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The program that sends a DHCP request during a boot.
#[derive(Clone, Copy)]
pub(crate) enum Speaker {
    Firmware,
    /// Firmware that boots by HTTP.
    HttpFirmware,
    /// Firmware of a machine with 64-bit ARM.
    ArmFirmware,
    ArmIpxe,
    /// The loader that the firmware starts, which runs scripts.
    Ipxe,
    /// The ramdisk's `udhcpc`, or any other operating system.
    System,
}

pub(crate) struct Machine {
    socket: UdpSocket,
    server: SocketAddr,
    /// An address of the machine's subnet.
    link: Ipv4Addr,
    mac: MacAddress,
}

/// The answer of a DHCP server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) kind: u8,
    pub(crate) address: Ipv4Addr,
    pub(crate) boot_file: String,
}

pub(crate) fn mac(n: u8) -> MacAddress {
    MacAddress::new([0x52, 0x54, 0, 0x79, 0, n])
}

impl Machine {
    pub(crate) async fn new(server: SocketAddr, link: Ipv4Addr, mac: MacAddress) -> Machine {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Machine { socket, server, link, mac }
    }

    /// Sends a message, and returns the server's answer if one arrives.
    pub(crate) async fn says(
        &self,
        kind: u8,
        speaker: Speaker,
        address: Option<Ipv4Addr>,
    ) -> Option<Answer> {
        self.socket.send_to(&self.message(kind, speaker, address), self.server).await.unwrap();
        let mut packet = [0; 1500];
        let (length, _) =
            timeout(PATIENCE, self.socket.recv_from(&mut packet)).await.ok()?.unwrap();
        Some(Answer::read(&packet[..length]))
    }

    /// Sends a message that has no answer.
    pub(crate) async fn tells(&self, kind: u8, address: Ipv4Addr) {
        let message = self.message(kind, Speaker::System, Some(address));
        self.socket.send_to(&message, self.server).await.unwrap();
    }

    /// Returns the address that the server offers, if any.
    pub(crate) async fn is_offered(&self, speaker: Speaker) -> Option<Ipv4Addr> {
        let answer = self.says(DISCOVER, speaker, None).await?;
        assert_eq!(answer.kind, OFFER, "{answer:?}");
        Some(answer.address).filter(|address| !address.is_unspecified())
    }

    /// Gets a lease, and returns the answer with the boot file.
    pub(crate) async fn boots(&self, speaker: Speaker) -> Option<Answer> {
        let address = self.is_offered(speaker).await?;
        let answer = self.says(REQUEST, speaker, Some(address)).await?;
        assert_eq!((answer.kind, answer.address), (ACK, address), "{answer:?}");
        Some(answer)
    }

    fn message(&self, kind: u8, speaker: Speaker, address: Option<Ipv4Addr>) -> Vec<u8> {
        let mut message = vec![0; 240];
        message[..4].copy_from_slice(&[1, 1, 6, 1]);
        message[4..8].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
        message[24..28].copy_from_slice(&[127, 0, 0, 1]);
        message[28..34].copy_from_slice(&self.mac.octets());
        message[236..].copy_from_slice(&[99, 130, 83, 99]);
        message.extend([53, 1, kind, 54, 4, 127, 0, 0, 1]);
        if let Some(address) = address {
            message.extend([50, 4]);
            message.extend(address.octets());
        }
        match speaker {
            Speaker::Firmware => message.extend(b"\x3c\x09PXEClient\x5d\x02\0\0"),
            Speaker::HttpFirmware => message.extend(b"\x3c\x0aHTTPClient\x5d\x02\0\x10"),
            Speaker::ArmFirmware => message.extend(b"\x3c\x09PXEClient\x5d\x02\0\x0b"),
            Speaker::ArmIpxe => message.extend(b"\x3c\x09PXEClient\x5d\x02\0\x0b\x4d\x04iPXE"),
            Speaker::Ipxe => message.extend(b"\x3c\x09PXEClient\x5d\x02\0\0\x4d\x04iPXE"),
            Speaker::System => {}
        }
        message.extend([82, 8, 5, 4]);
        message.extend(self.link.octets());
        message.extend([19, 0, 255]);
        message
    }
}

impl Answer {
    fn read(packet: &[u8]) -> Answer {
        let mut answer = Answer {
            kind: 0,
            address: Ipv4Addr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap()),
            boot_file: text(&packet[108..236]),
        };
        let mut rest = &packet[240..];
        while let [code, length, after @ ..] = rest {
            if *code == 255 {
                break;
            }
            let (value, after) = after.split_at(usize::from(*length));
            match code {
                53 => answer.kind = value[0],
                67 => answer.boot_file = text(value),
                _ => {}
            }
            rest = after;
        }
        answer
    }
}

fn text(octets: &[u8]) -> String {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    String::from_utf8_lossy(&octets[..end]).into_owned()
}
