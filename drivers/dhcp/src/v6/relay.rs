//! The messages by which relays forward those of clients and servers (RFC 8415 §9, §19).

use std::net::Ipv6Addr;

use super::{DecodeError, Message, Options, code};

const RELAY_FORWARD: u8 = 12;
const RELAY_REPLY: u8 = 13;
/// Message type, hop count, link address, peer address.
const HEAD: usize = 34;
/// RFC 8415 §7.6: HOP_COUNT_LIMIT.
const MOST_HOPS: usize = 8;

/// A message of a client, and the relays that forwarded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub message: Message,
    /// The last relay is first, the relay on the client's link is last.
    pub relays: Vec<Relay>,
    /// The address that the client sent from.
    pub client_address: Ipv6Addr,
}

/// One relay that forwarded a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    pub hops: u8,
    /// An address on the client's link; unspecified if another relay tells the link.
    pub link: Ipv6Addr,
    /// The sender of the message that the relay forwards.
    pub peer: Ipv6Addr,
    pub options: Options,
}

impl Received {
    /// Decodes a datagram that came from `sender`.
    pub fn decode(datagram: &[u8], sender: Ipv6Addr) -> Result<Self, DecodeError> {
        let mut relays: Vec<Relay> = Vec::new();
        let mut octets = datagram.to_vec();
        while octets.first() == Some(&RELAY_FORWARD) {
            if relays.len() == MOST_HOPS {
                return Err(DecodeError::TooManyRelays);
            }
            let (relay, forwarded) = Relay::decode(&octets)?;
            relays.push(relay);
            octets = forwarded;
        }
        let client_address = relays.last().map_or(sender, |relay| relay.peer);
        Ok(Received { message: Message::decode(&octets)?, relays, client_address })
    }

    /// Encodes an answer for the way back through the relays.
    pub fn encode_answer(&self, answer: &Message) -> Vec<u8> {
        let wrap = |octets, relay: &Relay| relay.encode_reply(octets);
        self.relays.iter().rev().fold(answer.encode(), wrap)
    }

    /// Returns an address on the client's link; `None` if no relay tells one.
    pub(super) fn link(&self) -> Option<Ipv6Addr> {
        // RFC 8415 §13.1: the relay that is nearest to the client and tells the link.
        self.relays.iter().rev().map(|relay| relay.link).find(|link| !link.is_unspecified())
    }
}

impl Relay {
    fn decode(octets: &[u8]) -> Result<(Self, Vec<u8>), DecodeError> {
        let too_short = DecodeError::TooShort { length: octets.len() };
        let (head, options) = octets.split_first_chunk::<HEAD>().ok_or(too_short)?;
        let address = |at: usize| {
            let mut address = [0; 16];
            address.copy_from_slice(&head[at..at + 16]);
            Ipv6Addr::from(address)
        };
        let options = Options::decode(options)?;
        let forwarded =
            options.get(code::RELAY_MESSAGE).ok_or(DecodeError::NothingForwarded)?.to_vec();
        Ok((Relay { hops: head[1], link: address(2), peer: address(18), options }, forwarded))
    }

    /// RFC 8415 §19.3: the answer has the fields of the forwarded message and the options that the relay needs.
    fn encode_reply(&self, answer: Vec<u8>) -> Vec<u8> {
        let mut options = Options::new();
        for code in [code::INTERFACE_IDENTIFIER, code::RELAY_SOURCE_PORT] {
            if let Some(value) = self.options.get(code) {
                options.add(code, value);
            }
        }
        options.add(code::RELAY_MESSAGE, answer);
        let mut octets = vec![RELAY_REPLY, self.hops];
        octets.extend(self.link.octets());
        octets.extend(self.peer.octets());
        octets.extend(options.encode());
        octets
    }
}
