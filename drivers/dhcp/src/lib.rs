#![doc = include_str!("../README.md")]

mod architecture;
mod client;
pub mod code;
mod config;
mod decision;
mod message;
mod message_type;
mod options;
mod relay;
mod reply;
mod server;
pub mod v6;

pub use architecture::Architecture;
pub use client::{Client, ClientKind};
pub use config::{Mode, ServerConfig};
pub use decision::{BootFile, Decision, Lease};
pub use message::{DecodeError, EncodeError, Message, Operation};
pub use message_type::MessageType;
pub use options::Options;
pub use relay::RelayInformation;
pub use reply::{Destination, Reply};
pub use server::{NoAnswer, answer, answer_binding};
