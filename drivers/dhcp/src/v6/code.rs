//! Numbers of the options that this crate knows, from IANA's "DHCPv6 Option Codes".

/// DUID of the client (RFC 8415 §21.2).
pub const CLIENT_IDENTIFIER: u16 = 1;
/// DUID of the server (RFC 8415 §21.3).
pub const SERVER_IDENTIFIER: u16 = 2;
/// An identity association for non-temporary addresses (RFC 8415 §21.4).
pub const IA_NA: u16 = 3;
/// An address of an identity association (RFC 8415 §21.6).
pub const IA_ADDRESS: u16 = 5;
/// The options that the client asks for (RFC 8415 §21.7).
pub const OPTION_REQUEST: u16 = 6;
/// The time since the client's first message (RFC 8415 §21.9).
pub const ELAPSED_TIME: u16 = 8;
/// The message that a relay forwards (RFC 8415 §21.10).
pub const RELAY_MESSAGE: u16 = 9;
/// The result of a request (RFC 8415 §21.13).
pub const STATUS: u16 = 13;
/// User classes of the client (RFC 8415 §21.15).
pub const USER_CLASS: u16 = 15;
/// Vendor classes of the client (RFC 8415 §21.16).
pub const VENDOR_CLASS: u16 = 16;
/// The relay's name of the client's link, which the server returns (RFC 8415 §21.18).
pub const INTERFACE_IDENTIFIER: u16 = 18;
/// DNS servers, in order of preference (RFC 3646 §3).
pub const DNS_SERVERS: u16 = 23;
/// URL of the boot file (RFC 5970 §3.1).
pub const BOOT_FILE_URL: u16 = 59;
/// Architectures of the client's firmware (RFC 5970 §3.3).
pub const ARCHITECTURE: u16 = 61;
/// Link-layer address of the client, from the relay on its link (RFC 6939).
pub const CLIENT_LINK_LAYER_ADDRESS: u16 = 79;
/// The port that the relay sent from (RFC 8357 §5.2).
pub const RELAY_SOURCE_PORT: u16 = 135;

/// Status codes (RFC 8415 §21.13).
pub mod status {
    /// The request was carried out.
    pub const SUCCESS: u16 = 0;
    /// The server has no address for the identity association.
    pub const NO_ADDRESSES: u16 = 2;
    /// The server does not know the identity association.
    pub const NO_BINDING: u16 = 3;
    /// An address does not belong to the client's link.
    pub const NOT_ON_LINK: u16 = 4;
}
