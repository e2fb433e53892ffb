//! The DHCP sockets: receives a request, asks the directory, sends the answer that the rules of `dhcp` give.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use dhcp::{
    Client, Destination, Message, MessageType, Mode, NoAnswer, Reply, ServerConfig, answer,
    answer_binding, code,
};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::addresses::Addresses;
use crate::socket::{StartError, udp_socket, udp_socket_on_interface};
use crate::{DhcpConfig, Directory, Listen, Observation};

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// Port of ProxyDHCP's binding service (PXE 2.1 §2.2.4).
const BINDING_PORT: u16 = 4011;

/// The longest DHCP message, in octets: an Ethernet frame.
const LONGEST: usize = 1500;

/// How many requests may wait for the directory at once. Further requests are dropped, and the clients retry.
const MOST_PENDING: usize = 512;

/// The DHCP service with its sockets open.
pub(crate) struct DhcpService {
    socket: UdpSocket,
    binding: Option<UdpSocket>,
    answerer: Arc<RequestHandler>,
}

/// The port that a request came to, which selects the rules.
#[derive(Clone, Copy)]
enum Port {
    Server,
    Binding,
}

struct RequestHandler {
    config: ServerConfig,
    reach: Reachability,
    directory: Arc<dyn Directory>,
    addresses: Arc<Addresses>,
}

/// The destinations that the socket can send to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reachability {
    Link,
    Routed,
}

impl DhcpService {
    pub(crate) fn open(
        config: DhcpConfig,
        directory: Arc<dyn Directory>,
        addresses: Arc<Addresses>,
    ) -> Result<Self, StartError> {
        let address = config.listen.address();
        if address.is_unspecified() {
            return Err(StartError::NoServerAddress);
        }
        let (socket, binding_port, reach) = match &config.listen {
            Listen::Interface { name, .. } => (
                udp_socket_on_interface("DHCP", name, SERVER_PORT)?,
                BINDING_PORT,
                Reachability::Link,
            ),
            Listen::Socket { address, port } => {
                (udp_socket("DHCP", (*address, *port).into())?, 0, Reachability::Routed)
            }
        };
        let binding = match config.mode {
            Mode::Full => None,
            Mode::Proxy => Some(udp_socket("ProxyDHCP", (address, binding_port).into())?),
        };
        let answerer = RequestHandler { config: config.server(), reach, directory, addresses };
        Ok(DhcpService { socket, binding, answerer: Arc::new(answerer) })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn binding_address(&self) -> Option<io::Result<SocketAddr>> {
        self.binding.as_ref().map(UdpSocket::local_addr)
    }

    pub(crate) async fn run(self, cancel: CancellationToken) {
        let serve = async {
            let server = serve(self.socket, Port::Server, self.answerer.clone());
            match self.binding {
                Some(socket) => {
                    tokio::join!(server, serve(socket, Port::Binding, self.answerer));
                }
                None => server.await,
            }
        };
        cancel.run_until_cancelled(serve).await;
    }
}

async fn serve(socket: UdpSocket, port: Port, answerer: Arc<RequestHandler>) {
    let socket = Arc::new(socket);
    let mut pending = JoinSet::new();
    let mut datagram = [0; LONGEST];
    loop {
        let (length, from) = match socket.recv_from(&mut datagram).await {
            Ok((length, SocketAddr::V4(from))) => (length, from),
            Ok((_, SocketAddr::V6(_))) => continue,
            Err(error) => {
                // An ICMP error about an earlier answer, or a link that went down: neither ends the service.
                warn!(%error, "receiving DHCP failed");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        while pending.try_join_next().is_some() {}
        let request = match Message::decode(&datagram[..length]) {
            Ok(request) => request,
            Err(error) => {
                debug!(%from, %error, "dropped a packet that is not a DHCP message");
                continue;
            }
        };
        if pending.len() >= MOST_PENDING {
            debug!(%from, "dropped a DHCP request, {MOST_PENDING} are waiting");
            continue;
        }
        let (socket, answerer) = (socket.clone(), answerer.clone());
        pending.spawn(async move { answerer.handle(&socket, port, &request, from).await });
    }
}

impl RequestHandler {
    async fn handle(&self, socket: &UdpSocket, port: Port, request: &Message, from: SocketAddrV4) {
        let (Some(asked), Some(client)) = (request.message_type(), Client::from_request(request))
        else {
            return;
        };
        self.observe(asked, request, &client);
        match asked {
            MessageType::Decline => return self.declined(request, &client).await,
            // RFC 2131 §4.3.4: a release gets no answer. The machine keeps its address here and gets the same one at its next boot.
            MessageType::Release => return,
            MessageType::Discover
            | MessageType::Request
            | MessageType::Inform
            | MessageType::Offer
            | MessageType::Ack
            | MessageType::Nak => {}
        }

        let decision = self.directory.decide(&client).await;
        let answered = match port {
            Port::Server => answer(&self.config, request, &decision),
            Port::Binding => answer_binding(&self.config, request, &decision),
        };
        match answered {
            Ok(reply) => self.send(socket, &client, reply, from).await,
            Err(NoAnswer::TypeNotAnswered(_) | NoAnswer::NotARequest) => {}
            Err(silence) => self.refused(&client, asked, silence.to_string()),
        }
    }

    /// Reports an address that the client found in use, if the client had the address from this server (RFC 2131 §4.3.3).
    async fn declined(&self, request: &Message, client: &Client) {
        let from_us = request.options.address(code::SERVER_IDENTIFIER) == Some(self.config.address);
        let address = request.options.address(code::REQUESTED_ADDRESS);
        if let (Mode::Full, true, Some(address)) = (self.config.mode, from_us, address) {
            self.directory.declined(client.mac, address.into()).await;
        }
    }

    /// Records the facts in a request that do not depend on the answer.
    fn observe(&self, asked: MessageType, request: &Message, client: &Client) {
        let requested = request.options.address(code::REQUESTED_ADDRESS);
        match asked {
            MessageType::Discover => self.directory.saw(client.mac, Observation::DhcpDiscover),
            MessageType::Decline => {
                warn!(client.mac = %client.mac, address = ?requested, "a machine found its address in use");
                self.directory.saw(
                    client.mac,
                    Observation::DhcpDeclined { address: requested.map(IpAddr::V4) },
                );
            }
            // With another DHCP server on the network, only the request shows which address that server gave.
            MessageType::Request => {
                let address = requested.unwrap_or(request.client_address);
                self.addresses.note(address.into(), client.mac);
            }
            MessageType::Inform => self.addresses.note(request.client_address.into(), client.mac),
            MessageType::Offer | MessageType::Ack | MessageType::Nak | MessageType::Release => {}
        }
    }

    async fn send(&self, socket: &UdpSocket, client: &Client, reply: Reply, from: SocketAddrV4) {
        let kind = reply.message.message_type().unwrap_or(MessageType::Nak);
        let to = match reply.to {
            Destination::Relay(address) => SocketAddrV4::new(address, SERVER_PORT),
            Destination::RelaySourcePort(address) => SocketAddrV4::new(address, from.port()),
            Destination::Client(address) => SocketAddrV4::new(address, CLIENT_PORT),
            Destination::Broadcast if self.reach == Reachability::Routed => {
                let reason = "it came by no relay, and this server is not on the machine's link";
                return self.refused(client, kind, reason.to_owned());
            }
            Destination::Broadcast => SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT_PORT),
            Destination::Sender => from,
        };
        let octets = match reply.message.encode(reply.limit) {
            Ok(octets) => octets,
            Err(error) => return self.refused(client, kind, error.to_string()),
        };
        if let Err(error) = socket.send_to(&octets, to).await {
            warn!(client.mac = %client.mac, %to, %error, "cannot send a {kind}");
            return self.refused(
                client,
                kind,
                format!("the answer cannot be sent to {to}: {error}"),
            );
        }
        self.sent(client, kind, &reply.message);
    }

    /// Reports a sent answer to the directory.
    fn sent(&self, client: &Client, kind: MessageType, message: &Message) {
        let given = Some(message.your_address).filter(|address| !address.is_unspecified());
        let boot_file = message
            .options
            .text(code::BOOT_FILE_NAME)
            .or_else(|| Some(String::from_utf8_lossy(&message.file).into_owned()))
            .filter(|file| !file.is_empty());
        let address = IpAddr::V4(given.unwrap_or(message.client_address));
        if kind != MessageType::Nak {
            self.addresses.note(address, client.mac);
        }
        // Only the last part of a URL is logged: the part before may be a capability.
        let file = boot_file.as_deref().and_then(|file| file.rsplit('/').next());
        info!(
            client.mac = %client.mac, client.kind = ?client.kind, %address, boot_file = file,
            "sent a {kind} to {}", client.mac
        );
        let sighting = if kind == MessageType::Offer {
            Observation::DhcpOffered { address: given.map(IpAddr::V4), boot_file }
        } else if kind == MessageType::Ack {
            Observation::DhcpAcked { address }
        } else {
            let reason = message.options.text(code::MESSAGE).unwrap_or_default();
            Observation::DhcpRefused { reason }
        };
        self.directory.saw(client.mac, sighting);
    }

    fn refused(&self, client: &Client, asked: MessageType, reason: String) {
        debug!(client.mac = %client.mac, client.kind = ?client.kind, "no answer to a {asked}: {reason}");
        self.directory.saw(client.mac, Observation::DhcpRefused { reason });
    }
}
