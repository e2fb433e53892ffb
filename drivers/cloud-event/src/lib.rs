#![doc = include_str!("../README.md")]

mod event;
mod pattern;
mod signature;

pub use event::{CONTENT_TYPE, CloudEvent, EventLevel, Notification, with_sequence};
pub use pattern::{EventPattern, InvalidPattern};
pub use signature::{InvalidSecret, SigningSecrets};
