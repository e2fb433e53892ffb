//! The relay agent (RFC 1542) through which all machines of a rack use DHCP: one socket for thousands of machines.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bmc_emulator::Firmware;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::dhcp::{self, ACK, DISCOVER, OFFER, REQUEST, Reply, option};
use crate::machine::Machine;

/// How often a client sends a request (PXE 2.1 §2.2.1 says four times).
const TRIES: u32 = 5;
/// Answers that wait for one client.
const WAITING: usize = 8;

/// The program that uses DHCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// Firmware that loads by TFTP.
    Pxe,
    /// Firmware that loads by HTTP.
    Http,
    Ipxe,
    /// The ramdisk's `udhcpc`.
    Ramdisk,
}

/// The result of a DHCP exchange.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    /// The server that gave the address.
    pub(crate) from: SocketAddr,
    pub(crate) address: Ipv4Addr,
    pub(crate) next_server: Ipv4Addr,
    pub(crate) boot_file: Option<String>,
}

/// The relay agent of a rack.
pub(crate) struct Relay {
    socket: UdpSocket,
    /// Each packet goes to all servers, as a broadcast does.
    servers: Vec<SocketAddr>,
    address: Ipv4Addr,
    asking: Mutex<Transactions>,
}

/// Where the answers of each transaction go, with the server that sent them.
type Transactions = HashMap<u32, mpsc::Sender<(SocketAddr, Reply)>>;

impl Relay {
    pub(crate) async fn open(servers: Vec<SocketAddr>) -> io::Result<Arc<Relay>> {
        let address = Ipv4Addr::LOCALHOST;
        let socket = UdpSocket::bind((address, 0)).await?;
        Ok(Arc::new(Relay { socket, servers, address, asking: Mutex::default() }))
    }

    /// Delivers answers to the waiting clients, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut packet = [0; 2048];
        loop {
            // The error is about an earlier packet that was refused; the client repeats its request.
            let Ok((length, from)) = self.socket.recv_from(&mut packet).await else {
                tokio::task::yield_now().await;
                continue;
            };
            if !self.servers.contains(&from) {
                continue;
            }
            let Some(reply) = dhcp::decode(&packet[..length]) else { continue };
            let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(client) = asking.get(&reply.transaction) {
                // A client that reads too slowly loses packets, as on a real network.
                let _ = client.try_send((from, reply));
            }
        }
    }

    /// Gets an address and the boot file; `None` if no answer comes.
    pub(crate) async fn lease(
        &self,
        machine: &Machine,
        speaker: Speaker,
        first_timeout: Duration,
    ) -> Option<Lease> {
        let mac = machine.spec().nics.first()?.mac.0;
        let transaction = rand::random();
        let (sender, mut replies) = mpsc::channel(WAITING);
        let _asking = Asking::new(&self.asking, transaction, sender);
        let about = about(machine, speaker);

        let mut discover = vec![(option::MESSAGE_TYPE, vec![DISCOVER])];
        discover.extend(about.iter().cloned());
        let packet = dhcp::encode(transaction, mac, self.address, &discover);
        let wanted = |reply: &Reply| reply.kind == OFFER && fits(speaker, reply);
        let (_, offer) =
            self.ask(machine, &packet, first_timeout, &mut replies, mac, wanted).await?;

        let mut request = vec![
            (option::MESSAGE_TYPE, vec![REQUEST]),
            (option::REQUESTED_ADDRESS, offer.your_address.octets().to_vec()),
            (option::SERVER, offer.server.clone()),
        ];
        request.extend(about);
        let packet = dhcp::encode(transaction, mac, self.address, &request);
        let wanted = |reply: &Reply| reply.kind == ACK && reply.your_address == offer.your_address;
        let (from, ack) =
            self.ask(machine, &packet, first_timeout, &mut replies, mac, wanted).await?;
        Some(Lease {
            from,
            address: ack.your_address,
            next_server: ack.next_server,
            boot_file: ack.boot_file.or(offer.boot_file),
        })
    }

    /// Sends `packet` until a wanted answer arrives, doubling the timeout each time.
    async fn ask(
        &self,
        machine: &Machine,
        packet: &[u8],
        first_timeout: Duration,
        replies: &mut mpsc::Receiver<(SocketAddr, Reply)>,
        mac: [u8; 6],
        wanted: impl Fn(&Reply) -> bool,
    ) -> Option<(SocketAddr, Reply)> {
        let mut patience = first_timeout;
        for _ in 0..TRIES {
            self.send(machine, packet).await;
            let heard = async {
                loop {
                    let (from, reply) = replies.recv().await?;
                    if !machine.faults().deaf_to_dhcp && reply.mac == mac && wanted(&reply) {
                        return Some((from, reply));
                    }
                }
            };
            if let Ok(heard) = timeout(patience, heard).await {
                return heard;
            }
            patience *= 2;
        }
        None
    }

    async fn send(&self, machine: &Machine, packet: &[u8]) {
        let faults = machine.faults();
        if faults.drop_dhcp {
            return;
        }
        if let Some(delay) = faults.dhcp_delay() {
            tokio::time::sleep(delay).await;
        }
        let copies = if faults.duplicate_dhcp { 2 } else { 1 };
        for _ in 0..copies {
            for server in &self.servers {
                // A packet that cannot be sent counts as lost.
                let _ = self.socket.send_to(packet, server).await;
            }
        }
    }
}

/// A DHCP transaction in progress; dropped from the table when it ends.
struct Asking<'a> {
    all: &'a Mutex<Transactions>,
    transaction: u32,
}

impl<'a> Asking<'a> {
    fn new(
        all: &'a Mutex<Transactions>,
        transaction: u32,
        sender: mpsc::Sender<(SocketAddr, Reply)>,
    ) -> Self {
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(transaction, sender);
        Asking { all, transaction }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.transaction);
    }
}

/// Whether the offer suits the client: UEFI 2.10 §24.7.3 requires the class `HTTPClient` in the answer.
fn fits(speaker: Speaker, reply: &Reply) -> bool {
    let class = reply.vendor_class.as_deref().unwrap_or_default();
    let has_address = !reply.your_address.is_unspecified();
    match speaker {
        Speaker::Http => has_address && class.starts_with("HTTPClient"),
        Speaker::Pxe | Speaker::Ipxe | Speaker::Ramdisk => has_address,
    }
}

/// Returns the options that a client sends in every message.
fn about(machine: &Machine, speaker: Speaker) -> Vec<(u8, Vec<u8>)> {
    if speaker == Speaker::Ramdisk {
        // The options of busybox 1.36.
        return vec![
            (option::PARAMETERS, vec![1, 3, 6, 12, 15, 28, 42]),
            (option::MAXIMUM_SIZE, 576_u16.to_be_bytes().to_vec()),
            (option::VENDOR_CLASS, b"udhcp 1.36.1".to_vec()),
        ];
    }
    // RFC 4578 §2.1 and IANA's "Processor Architecture Types".
    let architecture: u16 = match (speaker, machine.chassis().boot_mode()) {
        (Speaker::Http, _) => 16,
        (Speaker::Pxe | Speaker::Ipxe | Speaker::Ramdisk, Firmware::Bios) => 0,
        (Speaker::Pxe | Speaker::Ipxe | Speaker::Ramdisk, Firmware::Uefi) => 7,
    };
    let (class, undi) = match (speaker, machine.chassis().boot_mode()) {
        (Speaker::Http, _) => ("HTTPClient", [1, 3, 0]),
        (Speaker::Pxe | Speaker::Ipxe | Speaker::Ramdisk, Firmware::Bios) => {
            ("PXEClient", [1, 2, 1])
        }
        (Speaker::Pxe | Speaker::Ipxe | Speaker::Ramdisk, Firmware::Uefi) => {
            ("PXEClient", [1, 3, 0])
        }
    };
    let class =
        format!("{class}:Arch:{architecture:05}:UNDI:{:03}{:03}", undi[1], undi[2]).into_bytes();
    // RFC 4578 §2.3: type 0, then the UUID in SMBIOS form, with its first fields little-endian.
    let mut identifier = vec![0];
    identifier.extend(machine.spec().uuid.to_bytes_le());
    let mut about = vec![
        (option::PARAMETERS, vec![1, 3, 6, 12, 43, 54, 60, 66, 67, 97, 175]),
        (option::MAXIMUM_SIZE, 1472_u16.to_be_bytes().to_vec()),
        (option::VENDOR_CLASS, class),
        (option::ARCHITECTURE, architecture.to_be_bytes().to_vec()),
        (option::NETWORK_INTERFACE, undi.to_vec()),
        (option::MACHINE_IDENTIFIER, identifier),
    ];
    if speaker == Speaker::Ipxe {
        about.push((option::USER_CLASS, b"iPXE".to_vec()));
        // iPXE's features: HTTP (19) and TFTP (17), each one octet of value 1; its version (235).
        about.push((option::IPXE, vec![19, 1, 1, 17, 1, 1, 235, 3, 1, 21, 1]));
    }
    about
}
