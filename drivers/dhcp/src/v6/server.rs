//! Decides the answer to one request: RFC 8415 §18.3 as a pure function.

use std::net::Ipv6Addr;

use super::code::{self, status};
use super::reply::{Answer, Reply, addresses, v6};
use super::{MessageType, Received, ServerConfig};
use crate::server::check_decision;
use crate::{Client, Decision, NoAnswer};

/// Returns the answer to a request, or the reason why there is none.
pub fn answer(
    config: &ServerConfig,
    request: &Received,
    decision: &Decision,
) -> Result<Reply, NoAnswer> {
    check_identifiers(config, request)?;
    if let Some(link) = request.link().filter(|link| !config.subnet.contains(link)) {
        return Err(NoAnswer::AnotherSubnet { link: link.into() });
    }
    let client = Client::from_v6(request).ok_or(NoAnswer::NotARequest)?;
    let (lease, boot) = check_decision(&client, decision)?;
    let lease = match lease.and_then(|lease| v6(lease.address)) {
        Some(address) if !config.subnet.contains(&address) => {
            return Err(NoAnswer::LeaseOutsideSubnet { address: address.into() });
        }
        lease => lease,
    };

    let to = Answer { config, request, client: &client, boot };
    match request.message.kind {
        MessageType::Solicit => {
            Ok(to.with_lease(MessageType::Advertise, lease.ok_or(NoAnswer::NoLease)?))
        }
        // RFC 8415 §18.3.5: a server that does not know the client is silent, because another server may know it.
        MessageType::Rebind => {
            Ok(to.with_lease(MessageType::Reply, lease.ok_or(NoAnswer::NoLease)?))
        }
        MessageType::Request => Ok(match lease {
            Some(address) => to.with_lease(MessageType::Reply, address),
            None => to.without_lease(status::NO_ADDRESSES, "no address is left"),
        }),
        MessageType::Renew => Ok(match lease {
            Some(address) => to.with_lease(MessageType::Reply, address),
            None => to.without_lease(status::NO_BINDING, "the machine has no lease here"),
        }),
        MessageType::Confirm => confirm(to),
        MessageType::InformationRequest => Ok(to.information()),
        // RFC 8415 §18.3.7, §18.3.8: both are confirmed. The machine gets the same address at its next boot.
        MessageType::Release | MessageType::Decline => Ok(to.status(status::SUCCESS, "")),
        MessageType::Advertise | MessageType::Reply => Err(NoAnswer::NotARequest),
    }
}

/// Returns the addresses that a client found in use, if the message is a Decline to this server.
pub fn declined(config: &ServerConfig, request: &Received) -> Vec<Ipv6Addr> {
    let is_decline = request.message.kind == MessageType::Decline;
    if is_decline && check_identifiers(config, request).is_ok() {
        in_associations(request)
    } else {
        Vec::new()
    }
}

/// RFC 8415 §18.3.3: whether the client's addresses belong to its link. Without an address there is nothing to confirm.
fn confirm(to: Answer<'_>) -> Result<Reply, NoAnswer> {
    let addresses = in_associations(to.request);
    if addresses.is_empty() {
        return Err(NoAnswer::NotARequest);
    }
    let on_link = addresses.iter().all(|address| to.config.subnet.contains(address));
    Ok(if on_link {
        to.status(status::SUCCESS, "")
    } else {
        to.status(status::NOT_ON_LINK, "the address is not in this network")
    })
}

/// RFC 8415 §16: which messages need the identifier of the client and of the server, and which must not have it.
fn check_identifiers(config: &ServerConfig, request: &Received) -> Result<(), NoAnswer> {
    let options = &request.message.options;
    let client = options.get(code::CLIENT_IDENTIFIER).is_some_and(|duid| duid.len() > 2);
    let server = options.get(code::SERVER_IDENTIFIER);
    let is_ours = server.is_some_and(|server| server == config.identifier());
    match request.message.kind {
        MessageType::Solicit | MessageType::Confirm | MessageType::Rebind => {
            if client && server.is_none() { Ok(()) } else { Err(NoAnswer::NotARequest) }
        }
        MessageType::Request | MessageType::Renew | MessageType::Release | MessageType::Decline => {
            match (client, server) {
                (true, Some(_)) if is_ours => Ok(()),
                (true, Some(_)) => Err(NoAnswer::AsksAnother),
                (_, _) => Err(NoAnswer::NotARequest),
            }
        }
        MessageType::InformationRequest => match server {
            _ if options.get(code::IA_NA).is_some() => Err(NoAnswer::NotARequest),
            Some(_) if !is_ours => Err(NoAnswer::AsksAnother),
            _ => Ok(()),
        },
        MessageType::Advertise | MessageType::Reply => Err(NoAnswer::NotARequest),
    }
}

/// Returns all addresses in the identity associations of a request.
fn in_associations(request: &Received) -> Vec<Ipv6Addr> {
    let associations = request.message.options.all(code::IA_NA);
    associations.flat_map(|it| addresses(it.get(12..).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests;
