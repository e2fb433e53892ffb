//! DHCPv6 (RFC 8415): a codec for messages, and the rules of a server that gives addresses and names boot files (RFC 5970).
//!
//! The caller decides by the same [`Client`](crate::Client) and [`Decision`](crate::Decision) as for DHCPv4.

mod client;
pub mod code;
mod config;
mod message;
mod options;
mod relay;
mod reply;
mod server;

pub use config::{ServerConfig, server_identifier};
pub use message::{DecodeError, Message, MessageType};
pub use options::{CutOff, Options};
pub use relay::{Received, Relay};
pub use reply::Reply;
pub use server::{answer, declined};
