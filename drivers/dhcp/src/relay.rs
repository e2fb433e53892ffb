//! The information that a relay agent adds to a request (option 82, RFC 3046).

use std::net::Ipv4Addr;

use crate::{Message, Options, code};

/// The relay that forwarded a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayInformation {
    /// `giaddr`: the address to which answers go.
    pub address: Ipv4Addr,
    /// The client's subnet: RFC 3527's sub-option if present, `giaddr` otherwise.
    pub link: Ipv4Addr,
    /// Whether answers go to the port that the relay sent from (RFC 8357), instead of 67.
    pub source_port: bool,
}

impl RelayInformation {
    /// Reads the relay from a message; `None` if no relay forwarded the message.
    pub fn of(message: &Message) -> Option<Self> {
        if message.relay.is_unspecified() {
            return None;
        }
        let octets = message.options.get(code::RELAY_INFORMATION).unwrap_or_default();
        let reported = Options::decode(octets).unwrap_or_default();
        Some(RelayInformation {
            address: message.relay,
            link: reported.address(code::relay::LINK_SELECTION).unwrap_or(message.relay),
            source_port: reported.get(code::relay::SOURCE_PORT).is_some(),
        })
    }
}
