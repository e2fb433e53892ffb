#![doc = include_str!("../README.md")]

mod target;

mod client;
mod connector;

mod account;
mod boot;
mod inspection;
mod power;
mod quirks;
mod sensors;
mod serial;

mod commands;

mod lines;

mod line;
mod opening;
mod presence;

#[cfg(test)]
mod captured;
mod establish;
mod exchange;
mod in_session;
mod port;
mod session;
mod window;
mod wire;

pub use client::Client;
pub use commands::device::DeviceId;
pub use commands::event_log::LogInfo;
pub use commands::fru_areas::{Board, Chassis, Fru, Product};
pub use connector::Connector;
pub use lines::SessionLifetimes;
pub use presence::answers_ping;
pub use target::{CipherSuite, Privilege, Target};
