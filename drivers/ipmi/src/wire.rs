//! Codec for RMCP, IPMI 1.5 and RMCP+: pure functions without socket, clock or randomness.
//!
//! All input comes from a peer: its size is limited, and malformed input is an error.

pub(crate) mod crypto;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod packet;
pub(crate) mod reader;
pub(crate) mod serial;

pub(crate) use reader::{Malformed, Reader};
