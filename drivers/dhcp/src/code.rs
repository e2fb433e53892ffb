//! Numbers of the options this crate knows, from IANA's "BOOTP Vendor Extensions and DHCP Options".

/// RFC 2132 §3.1: filler, one octet without a length.
pub const PAD: u8 = 0;
/// RFC 2132 §3.3.
pub const SUBNET_MASK: u8 = 1;
/// RFC 2132 §3.5.
pub const ROUTER: u8 = 3;
/// RFC 2132 §3.8.
pub const DOMAIN_NAME_SERVER: u8 = 6;
/// RFC 2132 §3.14.
pub const HOST_NAME: u8 = 12;
/// RFC 2132 §3.17.
pub const DOMAIN_NAME: u8 = 15;
/// RFC 2132 §5.3.
pub const BROADCAST_ADDRESS: u8 = 28;
/// RFC 2132 §8.4: options of the vendor class; PXE's when the class is `PXEClient`.
pub const VENDOR_SPECIFIC: u8 = 43;
/// RFC 2132 §9.1.
pub const REQUESTED_ADDRESS: u8 = 50;
/// RFC 2132 §9.2, in seconds.
pub const LEASE_TIME: u8 = 51;
/// RFC 2132 §9.3: `file` and `sname` hold options.
pub const OVERLOAD: u8 = 52;
/// RFC 2132 §9.6.
pub const MESSAGE_TYPE: u8 = 53;
/// RFC 2132 §9.7.
pub const SERVER_IDENTIFIER: u8 = 54;
/// RFC 2132 §9.8.
pub const PARAMETER_LIST: u8 = 55;
/// RFC 2132 §9.9: why a request was refused.
pub const MESSAGE: u8 = 56;
/// RFC 2132 §9.10: the longest IP datagram the client takes.
pub const MAXIMUM_SIZE: u8 = 57;
/// RFC 2132 §9.13.
pub const VENDOR_CLASS: u8 = 60;
/// RFC 2132 §9.14.
pub const CLIENT_IDENTIFIER: u8 = 61;
/// RFC 2132 §9.4.
pub const TFTP_SERVER_NAME: u8 = 66;
/// RFC 2132 §9.5.
pub const BOOT_FILE_NAME: u8 = 67;
/// RFC 3004.
pub const USER_CLASS: u8 = 77;
/// RFC 3046.
pub const RELAY_INFORMATION: u8 = 82;
/// RFC 4578 §2.1.
pub const ARCHITECTURE: u8 = 93;
/// RFC 4578 §2.2.
pub const NETWORK_INTERFACE: u8 = 94;
/// RFC 4578 §2.3.
pub const MACHINE_IDENTIFIER: u8 = 97;
/// Options of iPXE in an option of their own: <https://ipxe.org/howto/dhcpd>.
pub const IPXE: u8 = 175;
/// RFC 2132 §3.2: nothing follows.
pub const END: u8 = 255;

/// Sub-options of [`VENDOR_SPECIFIC`] (PXE 2.1 §2.2, table 2-1).
pub mod pxe {
    /// How boot servers are to be found; bit 3 says: not at all, take the boot file of this offer.
    pub const DISCOVERY_CONTROL: u8 = 6;
    /// What a client asks of a boot server, and the server's confirmation.
    pub const BOOT_ITEM: u8 = 71;
}

/// Sub-options of [`RELAY_INFORMATION`].
pub mod relay {
    /// RFC 3527: the subnet the client is on, where it is not `giaddr`'s.
    pub const LINK_SELECTION: u8 = 5;
    /// RFC 8357 §5.1: the relay listens on the port it sent from, not on 67.
    pub const SOURCE_PORT: u8 = 19;
}

/// Sub-options of [`IPXE`].
pub mod ipxe {
    /// Not to wait for a ProxyDHCP server once there is an offer: `src/include/ipxe/dhcp.h` of iPXE.
    pub const NO_PROXY_DHCP: u8 = 176;
}
