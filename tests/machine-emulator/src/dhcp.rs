//! The DHCP codec of firmware: the needed parts of RFC 2131, RFC 2132 and RFC 4578, written for this emulator only.

use std::net::Ipv4Addr;

/// RFC 2131 §3: the cookie before the options.
const MAGIC: [u8; 4] = [99, 130, 83, 99];
/// RFC 2131 §2: the length of the fields before the options.
const FIXED: usize = 236;

pub(crate) const DISCOVER: u8 = 1;
pub(crate) const OFFER: u8 = 2;
pub(crate) const REQUEST: u8 = 3;
pub(crate) const ACK: u8 = 5;

/// Numbers of DHCP options.
pub(crate) mod option {
    pub(crate) const REQUESTED_ADDRESS: u8 = 50;
    pub(crate) const OVERLOAD: u8 = 52;
    pub(crate) const MESSAGE_TYPE: u8 = 53;
    pub(crate) const SERVER: u8 = 54;
    pub(crate) const PARAMETERS: u8 = 55;
    pub(crate) const MAXIMUM_SIZE: u8 = 57;
    pub(crate) const VENDOR_CLASS: u8 = 60;
    pub(crate) const BOOT_FILE: u8 = 67;
    pub(crate) const USER_CLASS: u8 = 77;
    pub(crate) const RELAY_INFORMATION: u8 = 82;
    pub(crate) const ARCHITECTURE: u8 = 93;
    pub(crate) const NETWORK_INTERFACE: u8 = 94;
    pub(crate) const MACHINE_IDENTIFIER: u8 = 97;
    pub(crate) const IPXE: u8 = 175;
}

/// RFC 8357 §5.1: answers go to the port that the relay sent from.
const RELAY_SOURCE_PORT: [u8; 2] = [19, 0];

/// Encodes a client's message as a relay at `relay` forwards it.
pub(crate) fn encode(
    transaction: u32,
    mac: [u8; 6],
    relay: Ipv4Addr,
    options: &[(u8, Vec<u8>)],
) -> Vec<u8> {
    let mut packet = vec![0; FIXED];
    // BOOTREQUEST on Ethernet, six octets of address, one hop.
    packet[..4].copy_from_slice(&[1, 1, 6, 1]);
    packet[4..8].copy_from_slice(&transaction.to_be_bytes());
    packet[10] = 0x80;
    packet[24..28].copy_from_slice(&relay.octets());
    packet[28..34].copy_from_slice(&mac);
    packet.extend(MAGIC);
    let relay = (option::RELAY_INFORMATION, RELAY_SOURCE_PORT.to_vec());
    for (code, value) in options.iter().chain([&relay]) {
        // RFC 3396 would split longer options; none of ours is longer.
        packet.extend([*code, u8::try_from(value.len()).unwrap_or(u8::MAX)]);
        packet.extend(value.iter().take(255));
    }
    packet.push(255);
    packet
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) transaction: u32,
    pub(crate) mac: [u8; 6],
    pub(crate) kind: u8,
    pub(crate) your_address: Ipv4Addr,
    pub(crate) next_server: Ipv4Addr,
    pub(crate) server: Vec<u8>,
    pub(crate) vendor_class: Option<String>,
    pub(crate) boot_file: Option<String>,
}

/// Decodes a server's message; `None` if it is not one.
pub(crate) fn decode(packet: &[u8]) -> Option<Reply> {
    let options = packet.get(FIXED..)?.strip_prefix(&MAGIC)?;
    if packet[0] != 2 {
        return None;
    }
    let address = |at: usize| -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?))
    };
    let mut reply = Reply {
        transaction: u32::from_be_bytes(packet[4..8].try_into().ok()?),
        mac: packet[28..34].try_into().ok()?,
        your_address: address(16)?,
        next_server: address(20)?,
        kind: 0,
        server: Vec::new(),
        vendor_class: None,
        boot_file: None,
    };
    let overload = read_options(options, &mut reply)?;
    let file = &packet[108..236];
    if overload & 1 != 0 {
        read_options(file, &mut reply)?;
    } else if reply.boot_file.is_none() {
        reply.boot_file = text(file);
    }
    (reply.kind != 0).then_some(reply)
}

/// Reads options into `reply`; returns the value of option 52. `None` if the options are cut off.
fn read_options(mut rest: &[u8], reply: &mut Reply) -> Option<u8> {
    let mut overload = 0;
    while let [code, after @ ..] = rest {
        match code {
            0 => rest = after,
            255 => break,
            _ => {
                let [length, after @ ..] = after else { return None };
                let (value, after) = after.split_at_checked(usize::from(*length))?;
                rest = after;
                match *code {
                    option::MESSAGE_TYPE => reply.kind = *value.first()?,
                    option::SERVER => reply.server = value.to_vec(),
                    option::OVERLOAD => overload = *value.first()?,
                    option::VENDOR_CLASS => reply.vendor_class = text(value),
                    option::BOOT_FILE => reply.boot_file = text(value),
                    _ => {}
                }
            }
        }
    }
    Some(overload)
}

/// Returns the text up to the first zero; `None` if it is empty.
fn text(octets: &[u8]) -> Option<String> {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    let text = String::from_utf8_lossy(&octets[..end]).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An offer in the layout of RFC 2131, built by hand.
    fn offer(options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; FIXED];
        packet[..4].copy_from_slice(&[2, 1, 6, 0]);
        packet[4..8].copy_from_slice(&[0, 0, 0, 7]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 9]);
        packet[20..24].copy_from_slice(&[10, 0, 0, 1]);
        packet[28..34].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        packet[108..112].copy_from_slice(b"boot");
        packet.extend(MAGIC);
        packet.extend(options);
        packet
    }

    #[test]
    fn an_offer_is_read() {
        let reply = decode(&offer(&[53, 1, 2, 54, 4, 10, 0, 0, 1, 0, 255])).unwrap();
        assert_eq!((reply.kind, reply.transaction), (OFFER, 7));
        assert_eq!(reply.your_address, Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(reply.next_server, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(reply.server, [10, 0, 0, 1]);
        assert_eq!(reply.boot_file.as_deref(), Some("boot"));
    }

    #[test]
    fn a_boot_file_in_an_option_comes_before_the_one_in_the_header() {
        let reply = decode(&offer(&[53, 1, 5, 67, 3, b'a', b'b', 0, 255])).unwrap();
        assert_eq!(reply.boot_file.as_deref(), Some("ab"));
    }

    #[test]
    fn a_truncated_packet_is_no_reply() {
        assert_eq!(decode(&offer(&[53])), None);
        assert_eq!(decode(&offer(&[53, 9, 2])), None);
        assert_eq!(decode(&offer(&[255])), None);
        assert_eq!(decode(&[2; 100]), None);
    }

    #[test]
    fn a_request_asks_for_answers_on_the_relays_port() {
        let packet = encode(7, [2, 0, 0, 0, 0, 1], Ipv4Addr::LOCALHOST, &[(53, vec![DISCOVER])]);
        assert_eq!(packet[24..28], [127, 0, 0, 1]);
        assert_eq!(packet[FIXED + 4..], [53, 1, 1, 82, 2, 19, 0, 255]);
    }

    proptest! {
        #[test]
        fn no_packet_panics(packet: Vec<u8>, options: Vec<u8>) {
            decode(&packet);
            decode(&offer(&options));
        }
    }
}
