//! The type of a DHCP message.

/// Value of option 53 (RFC 2132 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A client looks for servers.
    Discover,
    /// A server offers an address.
    Offer,
    /// A client accepts an offer, or asks a server to confirm the address it has.
    Request,
    /// A client found that another machine uses the address it was given.
    Decline,
    /// A server confirms an address.
    Ack,
    /// A server refuses an address.
    Nak,
    /// A client returns its address.
    Release,
    /// A client that has an address asks for the other settings.
    Inform,
}

impl MessageType {
    /// Returns the type with this number; `None` for an unknown number.
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

    /// The number of the type.
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

    /// The name of the type in the RFC.
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
