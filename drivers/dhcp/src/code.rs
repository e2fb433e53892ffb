//! Numbers of the options that this crate knows, from IANA's "BOOTP Vendor Extensions and DHCP Options".

/// Filler, one octet without a length (RFC 2132 §3.1).
pub const PAD: u8 = 0;
/// Mask of the client's subnet (RFC 2132 §3.3).
pub const SUBNET_MASK: u8 = 1;
/// Routers, in order of preference (RFC 2132 §3.5).
pub const ROUTER: u8 = 3;
/// DNS servers, in order of preference (RFC 2132 §3.8).
pub const DOMAIN_NAME_SERVER: u8 = 6;
/// Name of the client (RFC 2132 §3.14).
pub const HOST_NAME: u8 = 12;
/// DNS domain of the client (RFC 2132 §3.17).
pub const DOMAIN_NAME: u8 = 15;
/// Broadcast address of the client's subnet (RFC 2132 §5.3).
pub const BROADCAST_ADDRESS: u8 = 28;
/// Options of the vendor class (RFC 2132 §8.4); PXE's if the class is `PXEClient`.
pub const VENDOR_SPECIFIC: u8 = 43;
/// Address that the client asks for (RFC 2132 §9.1).
pub const REQUESTED_ADDRESS: u8 = 50;
/// Duration of the lease in seconds (RFC 2132 §9.2).
pub const LEASE_TIME: u8 = 51;
/// Says that `file` and `sname` hold options (RFC 2132 §9.3).
pub const OVERLOAD: u8 = 52;
/// Type of the message (RFC 2132 §9.6).
pub const MESSAGE_TYPE: u8 = 53;
/// Address that identifies the server (RFC 2132 §9.7).
pub const SERVER_IDENTIFIER: u8 = 54;
/// Options that the client asks for (RFC 2132 §9.8).
pub const PARAMETER_LIST: u8 = 55;
/// The reason of a refusal (RFC 2132 §9.9).
pub const MESSAGE: u8 = 56;
/// The longest IP datagram that the client accepts (RFC 2132 §9.10).
pub const MAXIMUM_SIZE: u8 = 57;
/// Vendor class of the client (RFC 2132 §9.13).
pub const VENDOR_CLASS: u8 = 60;
/// Identifier that the client chose (RFC 2132 §9.14).
pub const CLIENT_IDENTIFIER: u8 = 61;
/// Name of the TFTP server (RFC 2132 §9.4).
pub const TFTP_SERVER_NAME: u8 = 66;
/// Name of the boot file (RFC 2132 §9.5).
pub const BOOT_FILE_NAME: u8 = 67;
/// User class of the client (RFC 3004).
pub const USER_CLASS: u8 = 77;
/// Information that a relay agent adds (RFC 3046).
pub const RELAY_INFORMATION: u8 = 82;
/// Architecture of the client's firmware (RFC 4578 §2.1).
pub const ARCHITECTURE: u8 = 93;
/// Network driver interface of the client's firmware (RFC 4578 §2.2).
pub const NETWORK_INTERFACE: u8 = 94;
/// SMBIOS UUID of the client (RFC 4578 §2.3).
pub const MACHINE_IDENTIFIER: u8 = 97;
/// iPXE's own options, encapsulated in one option: <https://ipxe.org/howto/dhcpd>.
pub const IPXE: u8 = 175;
/// End mark: no option follows (RFC 2132 §3.2).
pub const END: u8 = 255;

/// Sub-options of [`VENDOR_SPECIFIC`] (PXE 2.1 §2.2, table 2-1).
pub mod pxe {
    /// How the client finds boot servers; bit 3 says: not at all, load the boot file of this offer.
    pub const DISCOVERY_CONTROL: u8 = 6;
    /// The boot item that a client asks a boot server for, and the server's confirmation.
    pub const BOOT_ITEM: u8 = 71;
}

/// Sub-options of [`RELAY_INFORMATION`] that a relay agent adds.
pub mod relay {
    /// The client's subnet, if it differs from the subnet of `giaddr` (RFC 3527).
    pub const LINK_SELECTION: u8 = 5;
    /// The relay listens on the port that it sent from, not on 67 (RFC 8357 §5.1).
    pub const SOURCE_PORT: u8 = 19;
}

/// Sub-options of [`IPXE`] that a server sends.
pub mod ipxe {
    /// Tells iPXE not to wait for a ProxyDHCP server after the first offer: `src/include/ipxe/dhcp.h` of iPXE.
    pub const NO_PROXY_DHCP: u8 = 176;
}
