//! What a message is for.

/// Option 53 (RFC 2132 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A client looks for servers.
    Discover,
    /// A server offers an address.
    Offer,
    /// A client takes an offer, or asks for the address it had to be confirmed.
    Request,
    /// A client found the address it was given in use.
    Decline,
    /// A server confirms.
    Ack,
    /// A server refuses.
    Nak,
    /// A client gives its address back.
    Release,
    /// A client has an address and asks for the rest.
    Inform,
}

impl MessageType {
    /// The type with this number.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => MessageType::Discover,
            2 => MessageType::Offer,
            3 => MessageType::Request,
            4 => MessageType::Decline,
            5 => MessageType::Ack,
            6 => MessageType::Nak,
            7 => MessageType::Release,
            8 => MessageType::Inform,
            _ => return None,
        })
    }

    /// Its number.
    pub const fn code(self) -> u8 {
        match self {
            MessageType::Discover => 1,
            MessageType::Offer => 2,
            MessageType::Request => 3,
            MessageType::Decline => 4,
            MessageType::Ack => 5,
            MessageType::Nak => 6,
            MessageType::Release => 7,
            MessageType::Inform => 8,
        }
    }

    /// Its name in the RFC.
    pub const fn as_str(self) -> &'static str {
        match self {
            MessageType::Discover => "DHCPDISCOVER",
            MessageType::Offer => "DHCPOFFER",
            MessageType::Request => "DHCPREQUEST",
            MessageType::Decline => "DHCPDECLINE",
            MessageType::Ack => "DHCPACK",
            MessageType::Nak => "DHCPNAK",
            MessageType::Release => "DHCPRELEASE",
            MessageType::Inform => "DHCPINFORM",
        }
    }
}

impl std::fmt::Display for MessageType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
