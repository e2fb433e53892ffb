//! A DHCP message and its wire form (RFC 2131 §2).

use std::net::Ipv4Addr;

use hardware::MacAddress;

use crate::options::CutOff;
use crate::{MessageType, Options, code};

const FIXED: usize = 236;
const MAGIC: [u8; 4] = [99, 130, 83, 99];
const SERVER_NAME: std::ops::Range<usize> = 44..108;
const FILE: std::ops::Range<usize> = 108..236;

/// RFC 1542 §2.1: a BOOTP message has at least 300 octets, and old relays and ROMs drop shorter messages.
const SHORTEST: usize = 300;

/// A DHCP message of either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub operation: Operation,
    /// The type of `hardware_address`; 1 is Ethernet.
    pub hardware_type: u8,
    /// Number of relays that the message passed.
    pub hops: u8,
    /// Number that the client chose and the server repeats.
    pub transaction: u32,
    /// Seconds since the client began.
    pub seconds: u16,
    /// Whether the client cannot receive a unicast before it has an address.
    pub broadcast: bool,
    /// `ciaddr`: the address that the client has and answers ARP for.
    pub client_address: Ipv4Addr,
    /// `yiaddr`: the address that the server gives to the client.
    pub your_address: Ipv4Addr,
    /// `siaddr`: the server of the boot file.
    pub next_server: Ipv4Addr,
    /// `giaddr`: the relay, or 0.0.0.0.
    pub relay: Ipv4Addr,
    /// `chaddr`, at most 16 octets.
    pub hardware_address: Vec<u8>,
    /// `sname` up to its NUL.
    pub server_name: Vec<u8>,
    /// `file` up to its NUL.
    pub file: Vec<u8>,
    /// The options of all areas, joined.
    pub options: Options,
}

/// The sender of a message (`op`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A client is the sender.
    Request,
    /// A server is the sender.
    Reply,
}

/// The reasons why octets are not a DHCP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than the fixed fields and the magic cookie.
    #[error("{length} octets are too few for a DHCP message")]
    TooShort { length: usize },
    /// `op` is neither 1 nor 2.
    #[error("operation {0} is neither request nor reply")]
    UnknownOperation(u8),
    /// `hlen` is above 16.
    #[error("a hardware address of {0} octets does not fit its field")]
    HardwareAddressTooLong(u8),
    /// The options do not begin with 99.130.83.99: the datagram is plain BOOTP or not BOOTP at all.
    #[error("the magic cookie of DHCP is missing")]
    NotDhcp,
    /// An option runs past the end of its area.
    #[error(transparent)]
    CutOff(#[from] CutOff),
}

/// The reasons why a message cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The options need more space than the datagram, `file` and `sname` have.
    #[error("the options do not fit a message of {limit} octets")]
    TooLong {
        /// Octets that the receiver accepts.
        limit: usize,
    },
    /// `file`, `sname` or `chaddr` is longer than its field.
    #[error("{field} is too long: at most {room} octets fit")]
    FieldTooLong {
        /// The RFC's name of the field.
        field: &'static str,
        /// Octets of the field.
        room: usize,
    },
}

impl Message {
    /// Decodes one datagram.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { length: octets.len() };
        let (fixed, rest) = octets.split_first_chunk::<FIXED>().ok_or(too_short)?;
        let (magic, area) = rest.split_first_chunk::<4>().ok_or(too_short)?;
        if *magic != MAGIC {
            return Err(DecodeError::NotDhcp);
        }
        let operation = match fixed[0] {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => return Err(DecodeError::UnknownOperation(other)),
        };
        if fixed[2] > 16 {
            return Err(DecodeError::HardwareAddressTooLong(fixed[2]));
        }

        let mut options = Options::new();
        options.append_area(area)?;
        // RFC 3396 §5: the areas are joined in the order options, file, sname.
        let overload = options.remove(code::OVERLOAD).and_then(|value| value.first().copied());
        let (file_has_options, name_has_options) =
            overload.map_or((false, false), |value| (value & 1 != 0, value & 2 != 0));
        if file_has_options {
            options.append_area(&fixed[FILE])?;
        }
        if name_has_options {
            options.append_area(&fixed[SERVER_NAME])?;
        }
        // An overload option inside an overloaded field has no meaning.
        options.remove(code::OVERLOAD);

        let text = |field: &[u8], has_options: bool| match has_options {
            true => Vec::new(),
            false => field.split(|octet| *octet == 0).next().unwrap_or_default().to_vec(),
        };
        Ok(Message {
            operation,
            hardware_type: fixed[1],
            hops: fixed[3],
            transaction: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            seconds: u16::from_be_bytes([fixed[8], fixed[9]]),
            broadcast: fixed[10] & 0x80 != 0,
            client_address: address(fixed, 12),
            your_address: address(fixed, 16),
            next_server: address(fixed, 20),
            relay: address(fixed, 24),
            hardware_address: fixed[28..28 + usize::from(fixed[2])].to_vec(),
            server_name: text(&fixed[SERVER_NAME], name_has_options),
            file: text(&fixed[FILE], file_has_options),
            options,
        })
    }

    /// Encodes the message into at most `limit` octets of UDP payload.
    ///
    /// Options that do not fit continue in `file` and `sname` if these fields are free (RFC 2132 §9.3).
    pub fn encode(&self, limit: usize) -> Result<Vec<u8>, EncodeError> {
        let mut octets = vec![0; FIXED];
        octets[0] = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        octets[1] = self.hardware_type;
        octets[2] = self.hardware_address.len() as u8;
        octets[3] = self.hops;
        octets[4..8].copy_from_slice(&self.transaction.to_be_bytes());
        octets[8..10].copy_from_slice(&self.seconds.to_be_bytes());
        octets[10] = if self.broadcast { 0x80 } else { 0 };
        octets[12..16].copy_from_slice(&self.client_address.octets());
        octets[16..20].copy_from_slice(&self.your_address.octets());
        octets[20..24].copy_from_slice(&self.next_server.octets());
        octets[24..28].copy_from_slice(&self.relay.octets());
        put(&mut octets[28..44], &self.hardware_address, "chaddr")?;
        put(&mut octets[SERVER_NAME], &self.server_name, "sname")?;
        put(&mut octets[FILE], &self.file, "file")?;
        octets.extend(MAGIC);

        let too_long = EncodeError::TooLong { limit };
        let room = limit.checked_sub(octets.len()).ok_or(too_long)?;
        match self.options.spread(&[room]) {
            Some(areas) => octets.extend(areas.concat()),
            None => self.overload(&mut octets, room).ok_or(too_long)?,
        }
        octets.resize(octets.len().max(SHORTEST), 0);
        Ok(octets)
    }

    /// Writes the options into the options area and every free field.
    fn overload(&self, octets: &mut Vec<u8>, room: usize) -> Option<()> {
        let free = [(FILE, &self.file, 1), (SERVER_NAME, &self.server_name, 2)];
        let free: Vec<_> = free.into_iter().filter(|(_, used, _)| used.is_empty()).collect();
        // The overload option itself takes three octets.
        let sizes: Vec<usize> = std::iter::once(room.checked_sub(3)?)
            .chain(free.iter().map(|(field, _, _)| field.len()))
            .collect();
        let areas = self.options.spread(&sizes)?;

        let (first, others) = areas.split_first()?;
        let used = free.into_iter().zip(others);
        let mut flags = 0;
        for ((field, _, flag), area) in used {
            octets[field.start..field.start + area.len()].copy_from_slice(area);
            flags |= flag;
        }
        octets.extend([code::OVERLOAD, 1, flags]);
        octets.extend(first);
        Some(())
    }

    /// Returns the type of the message; `None` for plain BOOTP.
    pub fn message_type(&self) -> Option<MessageType> {
        match self.options.get(code::MESSAGE_TYPE)? {
            [code] => MessageType::from_code(*code),
            _ => None,
        }
    }

    /// Returns the client's Ethernet address; `None` on another kind of link, and for a group address, which no machine can own.
    pub fn mac(&self) -> Option<MacAddress> {
        let octets: [u8; 6] = self.hardware_address.as_slice().try_into().ok()?;
        let mac = MacAddress::new(octets);
        (self.hardware_type == 1 && !mac.is_multicast()).then_some(mac)
    }
}

fn address(fixed: &[u8; FIXED], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3])
}

fn put(field: &mut [u8], octets: &[u8], name: &'static str) -> Result<(), EncodeError> {
    let room = field.len();
    let start =
        field.get_mut(..octets.len()).ok_or(EncodeError::FieldTooLong { field: name, room })?;
    start.copy_from_slice(octets);
    Ok(())
}

#[cfg(test)]
mod tests;
