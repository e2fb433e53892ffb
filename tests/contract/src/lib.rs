#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod client_types;
mod daemon_tests;
pub mod hostile;
mod in_process_api;
mod installation;
pub mod key_rotation;
pub mod listeners_file;
pub mod openapi;
pub mod openmetrics;
pub mod other_sites;
pub mod refused_starts;

pub use client_types::{ClientType, check_client_types};
pub use in_process_api::{Answer, InProcessApi, WireFormat};
pub use installation::{Daemon, DaemonProcess, Installation, Output, client, until};
