//! Decides the answer to one request: RFC 2131 §4.3 as a pure function.

use std::net::{IpAddr, Ipv4Addr};

use crate::config::{Mode, ServerConfig};
use crate::reply::{Answer, Reply, V4Lease};
use crate::{
    BootFile, Client, ClientKind, Decision, Lease, Message, MessageType, Operation,
    RelayInformation, code,
};

/// The reasons why a request gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The message comes from a server, or has no type, or no Ethernet address.
    #[error("it is not a request of a DHCP client on Ethernet")]
    NotARequest,
    /// A message of this type is never answered.
    #[error("a {0} message gets no answer")]
    TypeNotAnswered(MessageType),
    /// The client accepted another server's offer.
    #[error("the client accepted the offer of the server {server}")]
    ChoseAnother { server: Ipv4Addr },
    /// The client names another server by its DUID.
    #[error("the client asks another server")]
    AsksAnother,
    /// The relay serves a subnet that has no leases here.
    #[error("the relay asks for the subnet of {link}, which this server does not serve")]
    AnotherSubnet { link: IpAddr },
    /// The caller decided to ignore the client.
    #[error("{reason}")]
    Ignored { reason: String },
    /// The client has no address here.
    #[error("the machine has no lease here")]
    NoLease,
    /// The client's address is not in the subnet and could not work.
    #[error("the lease {address} lies outside the subnet")]
    LeaseOutsideSubnet { address: IpAddr },
    /// ProxyDHCP answers only clients that boot from the network.
    #[error("the machine is not booting from the network")]
    NotBooting,
    /// ProxyDHCP answers only with a boot file.
    #[error("no boot file for this machine")]
    NothingToBoot,
    /// The firmware cannot load the boot file, because it speaks another protocol.
    #[error("firmware of kind {kind:?} cannot load {boot_file}")]
    CannotLoad { kind: ClientKind, boot_file: String },
}

/// Returns the answer to a request on port 67, or the reason why there is none.
pub fn answer(
    config: &ServerConfig,
    request: &Message,
    decision: &Decision,
) -> Result<Reply, NoAnswer> {
    let (asked, client) = parse_request(request)?;
    match asked {
        MessageType::Discover | MessageType::Request | MessageType::Inform => {}
        MessageType::Decline | MessageType::Release => {
            return Err(NoAnswer::TypeNotAnswered(asked));
        }
        MessageType::Offer | MessageType::Ack | MessageType::Nak => {
            return Err(NoAnswer::NotARequest);
        }
    }
    let (lease, boot) = check_decision(&client, decision)?;

    let to = Answer { config, request, client: &client, boot };
    match config.mode {
        Mode::Full => answer_in_full(to, asked, lease),
        // The other server confirms the address.
        Mode::Proxy if asked != MessageType::Discover => Err(NoAnswer::TypeNotAnswered(asked)),
        Mode::Proxy if client.kind == ClientKind::Other => Err(NoAnswer::NotBooting),
        Mode::Proxy if boot.is_none() => Err(NoAnswer::NothingToBoot),
        Mode::Proxy => Ok(to.proxy_offer()),
    }
}

/// Returns the answer to a request on port 4011. A client that has an address asks there for the boot file, after a ProxyDHCP server has
/// answered it (PXE 2.1 §2.2.4).
pub fn answer_binding(
    config: &ServerConfig,
    request: &Message,
    decision: &Decision,
) -> Result<Reply, NoAnswer> {
    let (asked, client) = parse_request(request)?;
    if !matches!(asked, MessageType::Request | MessageType::Inform) {
        return Err(NoAnswer::TypeNotAnswered(asked));
    }
    let (_, boot) = check_decision(&client, decision)?;
    match (client.kind, boot) {
        (ClientKind::Other, _) => Err(NoAnswer::NotBooting),
        (_, None) => Err(NoAnswer::NothingToBoot),
        _ => Ok(Answer { config, request, client: &client, boot }.binding()),
    }
}

/// Returns the type and the client of a request.
fn parse_request(request: &Message) -> Result<(MessageType, Client), NoAnswer> {
    if request.operation == Operation::Reply {
        return Err(NoAnswer::NotARequest);
    }
    let asked = request.message_type().ok_or(NoAnswer::NotARequest)?;
    let client = Client::from_request(request).ok_or(NoAnswer::NotARequest)?;
    Ok((asked, client))
}

/// Returns lease and boot file of a decision; an error if the decision is to ignore the client or cannot be carried out.
pub(crate) fn check_decision<'a>(
    client: &Client,
    decision: &'a Decision,
) -> Result<(Option<&'a Lease>, Option<&'a BootFile>), NoAnswer> {
    let (lease, boot) = match decision {
        Decision::Ignore { reason } => return Err(NoAnswer::Ignored { reason: reason.clone() }),
        Decision::Answer { lease, boot } => (lease.as_ref(), boot.as_ref()),
    };
    match (client.kind, boot) {
        // An operating system does not need a boot file, and some operating systems would act on one.
        (ClientKind::Other, _) => Ok((lease, None)),
        (ClientKind::Pxe, Some(file @ BootFile::Http { .. }))
        | (ClientKind::Http, Some(file @ BootFile::Tftp { .. })) => {
            Err(NoAnswer::CannotLoad { kind: client.kind, boot_file: file.as_str().to_owned() })
        }
        (ClientKind::Pxe | ClientKind::Http | ClientKind::Ipxe, _) => Ok((lease, boot)),
    }
}

/// Answers as a full server (RFC 2131 §4.3.1, §4.3.2, §4.3.5).
fn answer_in_full(
    to: Answer<'_>,
    asked: MessageType,
    lease: Option<&Lease>,
) -> Result<Reply, NoAnswer> {
    let (config, request) = (to.config, to.request);
    if let Some(link) = RelayInformation::of(request).map(|relay| relay.link)
        && !config.subnet.contains(&link)
    {
        return Err(NoAnswer::AnotherSubnet { link: link.into() });
    }
    if asked == MessageType::Inform {
        return Ok(to.information());
    }
    if asked == MessageType::Request
        && let Some(server) = request.options.address(code::SERVER_IDENTIFIER)
        && server != config.address
    {
        return Err(NoAnswer::ChoseAnother { server });
    }

    // RFC 2131 §4.3.2: a server without a record of the client must stay silent.
    let lease = lease.ok_or(NoAnswer::NoLease)?;
    let address = match lease.address {
        IpAddr::V4(address) if config.subnet.contains(&address) => address,
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => {
            return Err(NoAnswer::LeaseOutsideSubnet { address });
        }
    };
    let lease = V4Lease { address, hostname: lease.hostname.as_deref() };
    if asked == MessageType::Discover {
        return Ok(to.offer(lease));
    }
    // A client in SELECTING or INIT-REBOOT names the address in option 50, in RENEWING or REBINDING in ciaddr.
    let wanted = request.options.address(code::REQUESTED_ADDRESS).unwrap_or(request.client_address);
    if wanted == lease.address {
        Ok(to.acknowledgement(lease))
    } else {
        Ok(to.refusal(&format!("{wanted} is not your address; your address is {}", lease.address)))
    }
}

#[cfg(test)]
mod tests;
