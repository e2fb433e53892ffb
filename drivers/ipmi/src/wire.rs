//! The bytes of RMCP, IPMI 1.5 and RMCP+: pure functions without socket, clock or randomness.
//!
//! Everything read here comes from a peer: it is bounded, and malformed input is an error.

pub(crate) mod crypto;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod packet;
pub(crate) mod reader;
pub(crate) mod serial;

pub(crate) use reader::{Malformed, Reader};
