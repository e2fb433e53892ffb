//! The facts about a client, read from a DHCPv6 request.

use std::net::Ipv6Addr;

use hardware::MacAddress;

use super::{Received, code};
use crate::{Architecture, Client, ClientKind};

/// The longest vendor class that is kept, in characters.
const LONGEST_CLASS: usize = 255;

impl Client {
    /// Reads the client from a DHCPv6 request; `None` if no part of the request has an Ethernet address.
    ///
    /// The system UUID is not read: the DUIDs of EDK II and of iPXE contain it in different byte orders.
    pub fn from_v6(request: &Received) -> Option<Self> {
        let options = &request.message.options;
        let vendor_class = options.get(code::VENDOR_CLASS).and_then(first_class);
        let kind = kind(options.get(code::USER_CLASS), vendor_class.as_deref().unwrap_or_default());
        let architecture = match options.get(code::ARCHITECTURE) {
            // RFC 5970 §3.3: in order of preference.
            Some([high, low, ..]) => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        };
        Some(Client {
            mac: mac(request)?,
            architecture: architecture.map(Architecture::from_code),
            kind,
            machine_uuid: None,
            vendor_class,
        })
    }
}

/// Returns the address of the network card that the request came from, from the first source that has it: the relay on the client's link,
/// the client's address on its link, its DUID. A DUID may have the address of another card of the machine, so it comes last.
fn mac(request: &Received) -> Option<MacAddress> {
    let relay = request.relays.last();
    let reported = relay.and_then(|relay| relay.options.get(code::CLIENT_LINK_LAYER_ADDRESS));
    let found = reported
        .and_then(ethernet)
        .or_else(|| in_address(request.client_address))
        .or_else(|| in_duid(request.message.options.get(code::CLIENT_IDENTIFIER)?));
    found.filter(|mac| !mac.is_multicast())
}

/// Reads a hardware type and an address (RFC 6939 §4, RFC 8415 §11.4); type 1 is Ethernet.
fn ethernet(octets: &[u8]) -> Option<MacAddress> {
    let [0, 1, address @ ..] = octets else { return None };
    address.try_into().ok().map(MacAddress::new)
}

/// Reads the Ethernet address in a link-local address (RFC 4291 §2.5.1, appendix A). An address made by another rule has none.
fn in_address(address: Ipv6Addr) -> Option<MacAddress> {
    let octets = address.octets();
    match octets {
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xff, 0xfe, d, e, f] => {
            Some(MacAddress::new([a ^ 2, b, c, d, e, f]))
        }
        _ => None,
    }
}

/// Reads the Ethernet address in a DUID: DUID-LLT (RFC 8415 §11.2) or DUID-LL (§11.4).
fn in_duid(duid: &[u8]) -> Option<MacAddress> {
    match duid {
        [0, 1, high, low, _, _, _, _, address @ ..] => {
            ethernet(&[&[*high, *low][..], address].concat())
        }
        [0, 3, link @ ..] => ethernet(link),
        _ => None,
    }
}

fn kind(user_class: Option<&[u8]>, vendor_class: &str) -> ClientKind {
    // RFC 8415 §21.15: each class has its length before it.
    if user_class.is_some_and(|classes| classes.starts_with(b"\x00\x04iPXE")) {
        ClientKind::Ipxe
    } else {
        ClientKind::of_vendor_class(vendor_class)
    }
}

/// Returns the first class of a vendor class option: the vendor's number, then each class with its length before it.
fn first_class(option: &[u8]) -> Option<String> {
    let (_, classes) = option.split_first_chunk::<4>()?;
    let (length, rest) = classes.split_first_chunk::<2>()?;
    let class = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
    Some(String::from_utf8_lossy(class).chars().take(LONGEST_CLASS).collect())
}
