//! The DHCPv6 socket: receives a request, asks the directory, sends the answer that the rules of `dhcp` give.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use dhcp::v6::{MessageType, Received, Reply, ServerConfig, answer, code, declined};
use dhcp::{Client, Decision, NoAnswer};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::addresses::Addresses;
use crate::socket::{StartError, udp_socket, udp_socket_in_group};
use crate::{DhcpV6Config, Directory, Listen, Observation};

/// RFC 8415 §7.1: the group of all servers and relays on a link.
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// RFC 8415 §7.2: the ports of servers and relays, and of clients.
const SERVER_PORT: u16 = 547;
const CLIENT_PORT: u16 = 546;

/// The longest message in octets: an Ethernet frame without the headers of IPv6 and UDP.
const LONGEST: usize = 1452;

/// How many requests may wait for the directory at once. Further requests are dropped, and the clients retry.
const MOST_PENDING: usize = 512;

/// The DHCPv6 service with its socket open.
pub(crate) struct DhcpV6Service {
    socket: Arc<UdpSocket>,
    handler: Arc<RequestHandler>,
}

struct RequestHandler {
    config: ServerConfig,
    directory: Arc<dyn Directory>,
    addresses: Arc<Addresses>,
}

impl DhcpV6Service {
    pub(crate) fn open(
        config: DhcpV6Config,
        directory: Arc<dyn Directory>,
        addresses: Arc<Addresses>,
    ) -> Result<Self, StartError> {
        if config.listen.address().is_unspecified() {
            return Err(StartError::NoServerAddress);
        }
        let socket = match &config.listen {
            Listen::Interface { name, .. } => {
                udp_socket_in_group("DHCPv6", name, ALL_SERVERS, SERVER_PORT)?
            }
            Listen::Socket { address, port } => udp_socket("DHCPv6", (*address, *port).into())?,
        };
        let handler = RequestHandler { config: config.server(), directory, addresses };
        Ok(DhcpV6Service { socket: Arc::new(socket), handler: Arc::new(handler) })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.serve()).await;
    }

    async fn serve(self) {
        let mut pending = JoinSet::new();
        let mut datagram = [0; LONGEST];
        loop {
            let (length, from) = match self.socket.recv_from(&mut datagram).await {
                Ok((length, SocketAddr::V6(from))) => (length, from),
                Ok((_, SocketAddr::V4(_))) => continue,
                Err(error) => {
                    // An ICMP error about an earlier answer, or a link that went down: neither ends the service.
                    warn!(%error, "receiving DHCPv6 failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            while pending.try_join_next().is_some() {}
            let request = match Received::decode(&datagram[..length], *from.ip()) {
                Ok(request) => request,
                Err(error) => {
                    debug!(%from, %error, "dropped a packet that is not a DHCPv6 request");
                    continue;
                }
            };
            if pending.len() >= MOST_PENDING {
                debug!(%from, "dropped a DHCPv6 request, {MOST_PENDING} are waiting");
                continue;
            }
            let (socket, handler) = (self.socket.clone(), self.handler.clone());
            pending.spawn(async move { handler.handle(&socket, &request, from).await });
        }
    }
}

impl RequestHandler {
    async fn handle(&self, socket: &UdpSocket, request: &Received, from: SocketAddrV6) {
        let Some(client) = Client::from_v6(request) else {
            debug!(%from, "dropped a DHCPv6 request without an Ethernet address");
            return;
        };
        let asked = request.message.kind;
        if asked == MessageType::Solicit {
            self.directory.saw(client.mac, Observation::DhcpDiscover);
        }
        for address in declined(&self.config, request) {
            warn!(client.mac = %client.mac, %address, "a machine found its address in use");
            let address = IpAddr::V6(address);
            self.directory.saw(client.mac, Observation::DhcpDeclined { address: Some(address) });
            self.directory.declined(client.mac, address).await;
        }
        let decision = match asked {
            // These are answered to every machine, and need no address.
            MessageType::Decline | MessageType::Release | MessageType::Confirm => {
                Decision::Answer { lease: None, boot: None }
            }
            MessageType::Solicit
            | MessageType::Request
            | MessageType::Renew
            | MessageType::Rebind
            | MessageType::InformationRequest => self.directory.decide(&client).await,
            MessageType::Advertise | MessageType::Reply => return,
        };
        match answer(&self.config, request, &decision) {
            Ok(reply) => self.send(socket, &client, request, reply, from).await,
            Err(NoAnswer::NotARequest) => {}
            Err(silence) => self.refused(&client, asked, silence.to_string()),
        }
    }

    async fn send(
        &self,
        socket: &UdpSocket,
        client: &Client,
        request: &Received,
        reply: Reply,
        from: SocketAddrV6,
    ) {
        let asked = request.message.kind;
        let mut to = from;
        to.set_port(match request.relays.first() {
            None => CLIENT_PORT,
            // RFC 8357 §5.3: such a relay listens on the port that it sent from.
            Some(relay) if relay.options.get(code::RELAY_SOURCE_PORT).is_some() => from.port(),
            Some(_) => SERVER_PORT,
        });
        let octets = request.encode_answer(&reply.message);
        if octets.len() > LONGEST {
            let length = octets.len();
            return self.refused(
                client,
                asked,
                format!("an answer of {length} octets is too long"),
            );
        }
        if let Err(error) = socket.send_to(&octets, to).await {
            warn!(client.mac = %client.mac, %to, %error, "cannot answer a {asked}");
            let reason = format!("the answer cannot be sent to {to}: {error}");
            return self.refused(client, asked, reason);
        }
        self.sent(client, request, reply);
    }

    /// Reports a sent answer to the directory.
    fn sent(&self, client: &Client, request: &Received, reply: Reply) {
        let Reply { message, address, boot_file } = reply;
        // Only the last part of a URL is logged: the part before may be a capability.
        let file = boot_file.as_deref().and_then(|file| file.rsplit('/').next());
        let given = address.map(IpAddr::V6);
        info!(
            client.mac = %client.mac, client.kind = ?client.kind, address = ?address, boot_file = file,
            "answered the {} of {} by {}", request.message.kind, client.mac, message.kind
        );
        if let Some(address) = given {
            self.addresses.note(address, client.mac);
        }
        let sighting = match (message.kind, given) {
            (MessageType::Advertise, address) => Observation::DhcpOffered { address, boot_file },
            (_, Some(address)) => Observation::DhcpAcked { address },
            (_, None) => return,
        };
        self.directory.saw(client.mac, sighting);
    }

    fn refused(&self, client: &Client, asked: MessageType, reason: String) {
        debug!(client.mac = %client.mac, client.kind = ?client.kind, "no answer to a {asked}: {reason}");
        self.directory.saw(client.mac, Observation::DhcpRefused { reason });
    }
}
