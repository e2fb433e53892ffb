//! What a relay agent says of the client (option 82, RFC 3046).

use std::net::Ipv4Addr;

use crate::{Message, Options, code};

/// The relay that passed a message on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayInformation {
    /// Where it takes answers: `giaddr`.
    pub address: Ipv4Addr,
    /// The subnet the client is on: RFC 3527's sub-option if there is one, `giaddr` otherwise.
    pub link: Ipv4Addr,
    /// Whether it takes answers on the port it sent from (RFC 8357) instead of on 67.
    pub source_port: bool,
}

impl RelayInformation {
    /// Reads it from a message; `None` if none came by.
    pub fn of(message: &Message) -> Option<Self> {
        if message.relay.is_unspecified() {
            return None;
        }
        let octets = message.options.get(code::RELAY_INFORMATION).unwrap_or_default();
        let told = Options::decode(octets).unwrap_or_default();
        Some(RelayInformation {
            address: message.relay,
            link: told.address(code::relay::LINK_SELECTION).unwrap_or(message.relay),
            source_port: told.get(code::relay::SOURCE_PORT).is_some(),
        })
    }
}
