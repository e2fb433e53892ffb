//! Construction of replies, and their destinations.

use std::net::Ipv4Addr;

use crate::{
    BootFile, Client, ClientKind, Message, MessageType, Mode, Operation, Options, RelayInformation,
    ServerConfig, code,
};

/// A message with its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub message: Message,
    pub to: Destination,
    /// The most octets of UDP payload that the client accepts.
    pub limit: usize,
}

/// The destination of an answer (RFC 2131 §4.1).
///
/// A client without an address always gets a broadcast, whether or not it set the flag: a unicast would need an ARP entry or a raw frame,
/// and every client accepts a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A relay, on port 67.
    Relay(Ipv4Addr),
    /// A relay, on the port that the request came from (RFC 8357 §5.2).
    RelaySourcePort(Ipv4Addr),
    /// A client that has this address, on port 68.
    Client(Ipv4Addr),
    /// Every machine on the link, on port 68.
    Broadcast,
    /// The address and port that the request came from.
    Sender,
}

/// A lease of an IPv4 address.
#[derive(Clone, Copy)]
pub(crate) struct V4Lease<'a> {
    pub(crate) address: Ipv4Addr,
    pub(crate) hostname: Option<&'a str>,
}

/// An answer under construction.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) request: &'a Message,
    pub(crate) client: &'a Client,
    pub(crate) boot: Option<&'a BootFile>,
}

impl Answer<'_> {
    pub(crate) fn offer(self, lease: V4Lease<'_>) -> Reply {
        self.with_lease(MessageType::Offer, lease)
    }

    pub(crate) fn acknowledgement(self, lease: V4Lease<'_>) -> Reply {
        self.with_lease(MessageType::Ack, lease)
    }

    /// RFC 2131 §4.3.5: the answer to an INFORM has no address and no times.
    pub(crate) fn information(self) -> Reply {
        let mut message = self.blank(MessageType::Ack);
        self.add_network(&mut message);
        self.add_boot_file(&mut message);
        self.address_to_client(message)
    }

    pub(crate) fn refusal(self, reason: &str) -> Reply {
        let mut message = self.blank(MessageType::Nak);
        message.options.set(code::MESSAGE, reason);
        // RFC 2131 §4.3.2: with the broadcast bit set, a relay broadcasts the refusal on the client's link. Without a relay the server
        // broadcasts it.
        let to = match self.relay() {
            Some(relay) => {
                message.broadcast = true;
                relay
            }
            None => Destination::Broadcast,
        };
        self.send(message, to)
    }

    /// PXE 2.1 §2.2.3: a ProxyDHCP offer has no address.
    pub(crate) fn proxy_offer(self) -> Reply {
        let mut message = self.blank(MessageType::Offer);
        self.add_boot_file(&mut message);
        self.address_to_client(message)
    }

    pub(crate) fn binding(self) -> Reply {
        let mut message = self.blank(MessageType::Ack);
        self.add_boot_file(&mut message);
        self.send(message, Destination::Sender)
    }

    fn with_lease(self, kind: MessageType, lease: V4Lease<'_>) -> Reply {
        let mut message = self.blank(kind);
        message.your_address = lease.address;
        let seconds = u32::try_from(self.config.lease_time.as_secs()).unwrap_or(u32::MAX);
        message.options.set(code::LEASE_TIME, seconds.to_be_bytes());
        self.add_network(&mut message);
        if let Some(name) = lease.hostname {
            message.options.set(code::HOST_NAME, name);
        }
        self.add_boot_file(&mut message);
        self.address_to_client(message)
    }

    /// Makes a message with the fields that every answer has (RFC 2131 table 3).
    fn blank(self, kind: MessageType) -> Message {
        let request = self.request;
        let mut options = Options::new();
        options.set(code::MESSAGE_TYPE, [kind.code()]);
        options.set(code::SERVER_IDENTIFIER, self.config.address.octets());
        // RFC 6842 §3, RFC 4578 §2.3 and RFC 3046 §2.2: the server returns these options unchanged.
        let returned = [code::CLIENT_IDENTIFIER, code::MACHINE_IDENTIFIER, code::RELAY_INFORMATION];
        for code in returned {
            if let Some(octets) = request.options.get(code) {
                options.set(code, octets);
            }
        }
        Message {
            operation: Operation::Reply,
            hardware_type: request.hardware_type,
            hops: 0,
            transaction: request.transaction,
            seconds: 0,
            broadcast: request.broadcast,
            client_address: if kind == MessageType::Ack {
                request.client_address
            } else {
                Ipv4Addr::UNSPECIFIED
            },
            your_address: Ipv4Addr::UNSPECIFIED,
            next_server: Ipv4Addr::UNSPECIFIED,
            relay: request.relay,
            hardware_address: request.hardware_address.clone(),
            server_name: Vec::new(),
            file: Vec::new(),
            options,
        }
    }

    fn add_network(self, message: &mut Message) {
        let ServerConfig { subnet, router, dns, domain, .. } = self.config;
        let options = &mut message.options;
        options.set(code::SUBNET_MASK, subnet.netmask().octets());
        options.set(code::BROADCAST_ADDRESS, subnet.broadcast().octets());
        if let Some(router) = router {
            options.set(code::ROUTER, router.octets());
        }
        if !dns.is_empty() {
            options.set(
                code::DOMAIN_NAME_SERVER,
                dns.iter().flat_map(Ipv4Addr::octets).collect::<Vec<_>>(),
            );
        }
        if let Some(domain) = domain {
            options.set(code::DOMAIN_NAME, domain.as_str());
        }
    }

    /// Adds the boot file in the form that the client's program understands.
    fn add_boot_file(self, message: &mut Message) {
        let Some(boot) = self.boot else { return };
        let server = self.config.tftp_server.unwrap_or(self.config.address);
        message.next_server = server;

        // Every ROM reads the field `file`. The option is for clients that ask for it, and it alone can hold a long URL.
        let name = boot.as_str().as_bytes();
        let fits_field = name.len() < 128;
        if fits_field {
            message.file = name.to_vec();
        }
        let asks = |code: &u8| {
            self.request.options.get(code::PARAMETER_LIST).is_some_and(|list| list.contains(code))
        };
        if asks(&code::BOOT_FILE_NAME) || !fits_field {
            message.options.set(code::BOOT_FILE_NAME, name);
        }
        if asks(&code::TFTP_SERVER_NAME) && matches!(boot, BootFile::Tftp { .. }) {
            message.options.set(code::TFTP_SERVER_NAME, server.to_string());
        }

        match self.client.kind {
            // UEFI 2.10 §24.7.3.2: a client that boots by HTTP ignores answers without this class.
            ClientKind::Http => message.options.set(code::VENDOR_CLASS, "HTTPClient"),
            ClientKind::Ipxe => {
                let mut ipxe = Options::new();
                ipxe.set(code::ipxe::NO_PROXY_DHCP, [1]);
                message.options.set(code::IPXE, ipxe.encode());
                self.add_proxy_class(message);
            }
            ClientKind::Pxe => self.add_proxy_class(message),
            ClientKind::Other => {}
        }
    }

    /// Marks the answer as a ProxyDHCP answer, and tells the client that no further discovery is needed.
    ///
    /// A full server leaves the mark out: the client would take the server for a boot server and ask it on port 4011.
    fn add_proxy_class(self, message: &mut Message) {
        if self.config.mode == Mode::Full {
            return;
        }
        message.options.set(code::VENDOR_CLASS, "PXEClient");
        let mut vendor = Options::new();
        // PXE 2.1 §2.2.3: bit 3 means that the client uses the boot file name of this message.
        vendor.set(code::pxe::DISCOVERY_CONTROL, [1 << 3]);
        let asked = self.request.options.get(code::VENDOR_SPECIFIC).unwrap_or_default();
        if let Some(item) =
            Options::decode(asked).ok().as_ref().and_then(|asked| asked.get(code::pxe::BOOT_ITEM))
        {
            vendor.set(code::pxe::BOOT_ITEM, item);
        }
        let mut octets = vendor.encode();
        octets.push(code::END);
        message.options.set(code::VENDOR_SPECIFIC, octets);
    }

    fn relay(self) -> Option<Destination> {
        let relay = RelayInformation::of(self.request)?;
        Some(match relay.source_port {
            true => Destination::RelaySourcePort(relay.address),
            false => Destination::Relay(relay.address),
        })
    }

    fn address_to_client(self, message: Message) -> Reply {
        let to = self.relay().unwrap_or_else(|| {
            let has = self.request.client_address;
            if has.is_unspecified() { Destination::Broadcast } else { Destination::Client(has) }
        });
        self.send(message, to)
    }

    fn send(self, message: Message, to: Destination) -> Reply {
        // RFC 2132 §9.10: the size includes the IP and UDP headers and is at least 576. A message longer than an Ethernet frame would be
        // fragmented, so 1500 is the most.
        let reported = match self.request.options.get(code::MAXIMUM_SIZE) {
            Some([high, low]) => usize::from(u16::from_be_bytes([*high, *low])),
            _ => 576,
        };
        Reply { message, to, limit: reported.clamp(576, 1500) - 28 }
    }
}
