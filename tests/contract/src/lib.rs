#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

pub mod hostile;
mod in_process_api;
mod installation;
pub mod key_rotation;
pub mod refused_starts;

pub use in_process_api::{Answer, InProcessApi, WireFormat};
pub use installation::{Daemon, DaemonProcess, Installation, Output, client, until};
