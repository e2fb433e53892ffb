#![doc = include_str!("../README.md")]

pub mod config;
mod console_owner;
pub mod provisioning;
mod provisioning_sockets;
mod service;
mod service_metrics;
mod undelivered;

pub use config::Config;
pub use service::{Listeners, Service, check};
