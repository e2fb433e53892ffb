//! Who asks: everything a decision can be based on, read from one request.

use hardware::MacAddress;
use uuid::Uuid;

use crate::{Architecture, Message, code};

/// A machine that speaks DHCP.
///
/// All of this is claimed, none of it is proven: anyone on the wire can send anyone's MAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// What its firmware runs on, if it says so.
    pub architecture: Option<Architecture>,
    /// Which program of the boot is speaking.
    pub kind: ClientKind,
    /// The SMBIOS UUID (option 97, RFC 4578 §2.3), as `dmidecode` and BMCs print it.
    ///
    /// SMBIOS 2.6 §7.2.1 stores the first three fields little-endian, and firmware sends what is
    /// stored (seen of iPXE on SeaBIOS and of OVMF).
    pub machine_uuid: Option<Uuid>,
    /// The vendor class (option 60), at most 255 characters.
    pub vendor_class: Option<String>,
}

/// Which program of the boot is speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientKind {
    /// Firmware that loads by TFTP (vendor class `PXEClient…`).
    Pxe,
    /// Firmware that loads by HTTP (vendor class `HTTPClient…`, UEFI 2.10 §24.7).
    Http,
    /// iPXE, which loads anything.
    Ipxe,
    /// An operating system, or whatever else does not boot from the network.
    Other,
}

impl Client {
    /// Reads it from a request; `None` if that has no Ethernet address.
    pub fn of(request: &Message) -> Option<Self> {
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
    // iPXE sends its user class bare; RFC 3004 §4 wants a length before each class.
    let user_class = request.options.get(code::USER_CLASS);
    let says_ipxe = matches!(user_class, Some(b"iPXE" | b"\x04iPXE"));
    if says_ipxe || request.options.get(code::IPXE).is_some() {
        ClientKind::Ipxe
    } else if vendor_class.starts_with("HTTPClient") {
        ClientKind::Http
    } else if vendor_class.starts_with("PXEClient") {
        ClientKind::Pxe
    } else {
        ClientKind::Other
    }
}

fn architecture(request: &Message, vendor_class: Option<&str>) -> Option<Architecture> {
    // Option 93 is a list, the first being preferred.
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
    // RFC 4578 §2.3: type 0 is the only one.
    let [0, octets @ ..] = request.options.get(code::MACHINE_IDENTIFIER)? else { return None };
    Uuid::from_slice_le(octets).ok()
}
