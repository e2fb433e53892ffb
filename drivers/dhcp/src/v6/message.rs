//! A DHCPv6 message between a client and a server, and its wire form (RFC 8415 §8).

use std::fmt;

use super::{CutOff, Options};

/// A message of a client or a server. Relays wrap it, see [`Received`](super::Received).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageType,
    /// The number that the client chose and the server repeats.
    pub transaction: [u8; 3],
    pub options: Options,
}

/// The type of a message (RFC 8415 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A client looks for servers.
    Solicit,
    /// A server offers an address.
    Advertise,
    /// A client accepts an offer.
    Request,
    /// A client asks whether its address still belongs to its link.
    Confirm,
    /// A client asks the server of its address to extend the lease.
    Renew,
    /// A client asks any server to extend the lease.
    Rebind,
    /// A server answers.
    Reply,
    /// A client returns its address.
    Release,
    /// A client found that another machine uses the address it was given.
    Decline,
    /// A client that has an address asks for the other settings.
    InformationRequest,
}

/// The reasons why octets are not a DHCPv6 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than the fixed fields.
    #[error("{length} octets are too few for a DHCPv6 message")]
    TooShort { length: usize },
    /// No message between a client and a server has this type.
    #[error("messages of type {0} are not known")]
    UnknownType(u8),
    /// RFC 8415 §7.6: a message passes at most eight relays.
    #[error("more relays forwarded the message than is allowed")]
    TooManyRelays,
    /// A relay forwarded no message.
    #[error("the relay forwarded no message")]
    NothingForwarded,
    /// An option runs past the end.
    #[error(transparent)]
    CutOff(#[from] CutOff),
}

impl Message {
    /// Decodes a message that no relay wraps.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { length: octets.len() };
        let ([kind, transaction @ ..], options) =
            octets.split_first_chunk::<4>().ok_or(too_short)?;
        Ok(Message {
            kind: MessageType::from_code(*kind).ok_or(DecodeError::UnknownType(*kind))?,
            transaction: *transaction,
            options: Options::decode(options)?,
        })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = vec![self.kind.code()];
        octets.extend(self.transaction);
        octets.extend(self.options.encode());
        octets
    }
}

#[rustfmt::skip]
const TYPES: [(MessageType, u8, &str); 10] = [
    (MessageType::Solicit,             1, "Solicit"),
    (MessageType::Advertise,           2, "Advertise"),
    (MessageType::Request,             3, "Request"),
    (MessageType::Confirm,             4, "Confirm"),
    (MessageType::Renew,               5, "Renew"),
    (MessageType::Rebind,              6, "Rebind"),
    (MessageType::Reply,               7, "Reply"),
    (MessageType::Release,             8, "Release"),
    (MessageType::Decline,             9, "Decline"),
    (MessageType::InformationRequest, 11, "Information-request"),
];

impl MessageType {
    /// Returns the type with this number; `None` for an unknown number.
    pub fn from_code(code: u8) -> Option<Self> {
        TYPES.iter().find(|(_, number, _)| *number == code).map(|(kind, ..)| *kind)
    }

    /// The number of the type.
    pub fn code(self) -> u8 {
        TYPES.iter().find(|(kind, ..)| *kind == self).map_or(0, |(_, number, _)| *number)
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TYPES.iter().find(|(kind, ..)| kind == self).map_or("", |(_, _, name)| *name))
    }
}
