//! The facts about a client that a decision can use, read from one request.

use hardware::MacAddress;
use uuid::Uuid;

use crate::{Architecture, Message, code};

/// A machine that sent a DHCP request.
///
/// Every field is a claim without proof: anyone on the network can send anyone's MAC address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub mac: MacAddress,
    /// The architecture of its firmware, if the request tells it.
    pub architecture: Option<Architecture>,
    pub kind: ClientKind,
    /// The SMBIOS UUID (option 97, RFC 4578 §2.3), as `dmidecode` and BMCs print it.
    ///
    /// SMBIOS 2.6 §7.2.1 stores the first three fields little-endian, and firmware sends the stored bytes (observed with iPXE on SeaBIOS
    /// and with OVMF).
    pub machine_uuid: Option<Uuid>,
    /// The vendor class (option 60), at most 255 characters.
    pub vendor_class: Option<String>,
}

/// The program that sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientKind {
    /// Firmware that loads by TFTP (vendor class `PXEClient…`).
    Pxe,
    /// Firmware that loads by HTTP (vendor class `HTTPClient…`, UEFI 2.10 §24.7).
    Http,
    /// iPXE, which loads by TFTP and by HTTP.
    Ipxe,
    /// An operating system, or another client that does not boot from the network.
    Other,
}

impl ClientKind {
    /// Returns the kind of a client that is not iPXE.
    pub(crate) fn of_vendor_class(class: &str) -> Self {
        if class.starts_with("HTTPClient") {
            ClientKind::Http
        } else if class.starts_with("PXEClient") {
            ClientKind::Pxe
        } else {
            ClientKind::Other
        }
    }
}

impl Client {
    /// Reads the client from a request; `None` if the request has no Ethernet address.
    pub fn from_request(request: &Message) -> Option<Self> {
        let vendor_class = request.options.text(code::VENDOR_CLASS);
        let vendor_class = vendor_class.map(|class| class.chars().take(255).collect::<String>());
        Some(Client {
            mac: request.mac()?,
            architecture: architecture(request, vendor_class.as_deref()),
            kind: kind(request, vendor_class.as_deref().unwrap_or_default()),
            machine_uuid: machine_uuid(request),
            vendor_class,
        })
    }
}

fn kind(request: &Message, vendor_class: &str) -> ClientKind {
    // iPXE sends its user class without a length; RFC 3004 §4 wants a length before each class.
    let user_class = request.options.get(code::USER_CLASS);
    let says_ipxe = matches!(user_class, Some(b"iPXE" | b"\x04iPXE"));
    if says_ipxe || request.options.get(code::IPXE).is_some() {
        ClientKind::Ipxe
    } else {
        ClientKind::of_vendor_class(vendor_class)
    }
}

fn architecture(request: &Message, vendor_class: Option<&str>) -> Option<Architecture> {
    // Option 93 is a list in order of preference.
    let listed = match request.options.get(code::ARCHITECTURE) {
        Some([high, low, ..]) => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    };
    // PXE 2.1 §2.2.1: `PXEClient:Arch:xxxxx:UNDI:yyyzzz`.
    let in_class =
        || vendor_class?.split(':').skip_while(|word| *word != "Arch").nth(1)?.parse().ok();
    listed.or_else(in_class).map(Architecture::from_code)
}

fn machine_uuid(request: &Message) -> Option<Uuid> {
    // RFC 4578 §2.3: 0 is the only type of identifier.
    let [0, octets @ ..] = request.options.get(code::MACHINE_IDENTIFIER)? else { return None };
    Uuid::from_slice_le(octets).ok()
}
