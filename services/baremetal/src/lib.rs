#![doc = include_str!("../README.md")]

pub mod config;
mod given_up;
pub mod provisioning;
mod service;

pub use config::Config;
pub use service::{Listeners, Service, check};
