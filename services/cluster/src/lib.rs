#![doc = include_str!("../README.md")]

pub mod config;
mod service;

pub use config::Config;
pub use service::{Listeners, Service};
