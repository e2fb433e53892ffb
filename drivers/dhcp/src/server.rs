//! What a server answers to one request: RFC 2131 §4.3 as a pure function.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::reply::{Answer, Reply};
use crate::{
    BootFile, Client, ClientKind, Decision, Lease, Message, MessageType, Operation,
    RelayInformation, code,
};

/// What does not depend on the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Who gives the addresses.
    pub mode: Mode,
    /// Our own address: server identifier and, unless told otherwise, where the boot files are.
    pub address: Ipv4Addr,
    /// Where the boot files are, if not at `address`.
    pub tftp_server: Option<Ipv4Addr>,
    /// The subnet leases lie in.
    pub subnet: Subnet,
    /// Its router.
    pub router: Option<Ipv4Addr>,
    /// Its name servers.
    pub dns: Vec<Ipv4Addr>,
    /// Its domain.
    pub domain: Option<String>,
    /// How long a lease holds.
    pub lease_time: Duration,
}

/// Who gives the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// We do; there must be no other server.
    Full,
    /// Another server does; we only add what to boot (PXE 2.1 §2.2.3, "ProxyDHCP").
    Proxy,
}

/// An IPv4 subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Any address in it.
    pub address: Ipv4Addr,
    /// The length of its prefix; above 32 counts as 32.
    pub prefix: u8,
}

impl Subnet {
    /// The subnet mask.
    pub fn mask(self) -> Ipv4Addr {
        let host_bits = 32 - u32::from(self.prefix.min(32));
        Ipv4Addr::from(u32::MAX.checked_shl(host_bits).unwrap_or(0))
    }

    /// Whether `address` lies in it.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.mask() & address == self.mask() & self.address
    }

    /// The last address: everybody.
    pub fn broadcast(self) -> Ipv4Addr {
        self.address | !self.mask()
    }
}

/// Why a request gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// It is a server's message, or has no type, or no Ethernet address.
    #[error("it is not a request of a DHCP client on Ethernet")]
    NotARequest,
    /// Its kind takes no answer.
    #[error("a {0} takes no answer")]
    NothingAsked(MessageType),
    /// The client took another server's offer.
    #[error("the client chose the server {server}")]
    ChoseAnother {
        /// Whose offer it took.
        server: Ipv4Addr,
    },
    /// The relay is on a subnet we have no leases for.
    #[error("the relay asks for the subnet of {link}, which is not ours")]
    AnotherSubnet {
        /// What the relay named.
        link: Ipv4Addr,
    },
    /// It was decided to say nothing.
    #[error("{reason}")]
    Ignored {
        /// Why.
        reason: String,
    },
    /// No address has been set aside for the client.
    #[error("the machine has no lease here")]
    NoLease,
    /// An address has been set aside that cannot work.
    #[error("the lease {address} lies outside the subnet")]
    LeaseOutsideSubnet {
        /// The address.
        address: Ipv4Addr,
    },
    /// ProxyDHCP has nothing to say to a client that does not boot from the network.
    #[error("the machine is not booting from the network")]
    NotBooting,
    /// ProxyDHCP has nothing to say without a boot file.
    #[error("there is nothing for the machine to boot")]
    NothingToBoot,
    /// The firmware loads by another protocol than the boot file wants.
    #[error("firmware of kind {kind:?} cannot load {boot_file}")]
    CannotLoad {
        /// Which program asks.
        kind: ClientKind,
        /// What it was to load.
        boot_file: String,
    },
}

/// The answer to a request that came to port 67, or why there is none.
pub fn answer(
    config: &ServerConfig,
    request: &Message,
    decision: &Decision,
) -> Result<Reply, Silence> {
    let (asked, client) = asked(request)?;
    match asked {
        MessageType::Discover | MessageType::Request | MessageType::Inform => {}
        MessageType::Decline | MessageType::Release => return Err(Silence::NothingAsked(asked)),
        MessageType::Offer | MessageType::Ack | MessageType::Nak => {
            return Err(Silence::NotARequest);
        }
    }
    let (lease, boot) = decided(&client, decision)?;

    let to = Answer { config, request, client: &client, boot };
    match config.mode {
        Mode::Full => answer_in_full(to, asked, lease),
        // Confirming the address is the other server's business.
        Mode::Proxy if asked != MessageType::Discover => Err(Silence::NothingAsked(asked)),
        Mode::Proxy if client.kind == ClientKind::Other => Err(Silence::NotBooting),
        Mode::Proxy if boot.is_none() => Err(Silence::NothingToBoot),
        Mode::Proxy => Ok(to.proxy_offer()),
    }
}

/// The answer to a request that came to port 4011, where a client asks the ProxyDHCP server that
/// answered it for the boot file once it has an address (PXE 2.1 §2.2.4).
pub fn answer_binding(
    config: &ServerConfig,
    request: &Message,
    decision: &Decision,
) -> Result<Reply, Silence> {
    let (asked, client) = asked(request)?;
    if !matches!(asked, MessageType::Request | MessageType::Inform) {
        return Err(Silence::NothingAsked(asked));
    }
    let (_, boot) = decided(&client, decision)?;
    match (client.kind, boot) {
        (ClientKind::Other, _) => Err(Silence::NotBooting),
        (_, None) => Err(Silence::NothingToBoot),
        _ => Ok(Answer { config, request, client: &client, boot }.binding()),
    }
}

/// What is asked, by whom.
fn asked(request: &Message) -> Result<(MessageType, Client), Silence> {
    if request.operation == Operation::Reply {
        return Err(Silence::NotARequest);
    }
    let asked = request.message_type().ok_or(Silence::NotARequest)?;
    let client = Client::of(request).ok_or(Silence::NotARequest)?;
    Ok((asked, client))
}

/// What was decided, unless it is to say nothing or cannot be carried out.
fn decided<'a>(
    client: &Client,
    decision: &'a Decision,
) -> Result<(Option<&'a Lease>, Option<&'a BootFile>), Silence> {
    let (lease, boot) = match decision {
        Decision::Ignore { reason } => return Err(Silence::Ignored { reason: reason.clone() }),
        Decision::Answer { lease, boot } => (lease.as_ref(), boot.as_ref()),
    };
    match (client.kind, boot) {
        // An operating system has no use for a boot file, and some would take it for news.
        (ClientKind::Other, _) => Ok((lease, None)),
        (ClientKind::Pxe, Some(file @ BootFile::Http { .. }))
        | (ClientKind::Http, Some(file @ BootFile::Tftp { .. })) => {
            Err(Silence::CannotLoad { kind: client.kind, boot_file: file.as_str().to_owned() })
        }
        (ClientKind::Pxe | ClientKind::Http | ClientKind::Ipxe, _) => Ok((lease, boot)),
    }
}

/// RFC 2131 §4.3.1, §4.3.2, §4.3.5.
fn answer_in_full(
    to: Answer<'_>,
    asked: MessageType,
    lease: Option<&Lease>,
) -> Result<Reply, Silence> {
    let (config, request) = (to.config, to.request);
    if let Some(link) = RelayInformation::of(request).map(|relay| relay.link)
        && !config.subnet.contains(link)
    {
        return Err(Silence::AnotherSubnet { link });
    }
    if asked == MessageType::Inform {
        return Ok(to.information());
    }
    if asked == MessageType::Request
        && let Some(server) = request.options.address(code::SERVER_IDENTIFIER)
        && server != config.address
    {
        return Err(Silence::ChoseAnother { server });
    }

    // RFC 2131 §4.3.2: a server with no record of the client must stay silent.
    let lease = lease.ok_or(Silence::NoLease)?;
    if !config.subnet.contains(lease.address) {
        return Err(Silence::LeaseOutsideSubnet { address: lease.address });
    }
    if asked == MessageType::Discover {
        return Ok(to.offer(lease));
    }
    // SELECTING and INIT-REBOOT name the address in option 50, RENEWING and REBINDING in ciaddr.
    let wanted = request.options.address(code::REQUESTED_ADDRESS).unwrap_or(request.client_address);
    if wanted == lease.address {
        Ok(to.acknowledgement(lease))
    } else {
        Ok(to.refusal(&format!("{wanted} is not yours, {} is", lease.address)))
    }
}

#[cfg(test)]
mod tests;
