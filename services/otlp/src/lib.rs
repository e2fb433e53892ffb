#![doc = include_str!("../README.md")]

mod exporter;

mod collector;
mod config;
mod encode;
mod message;

pub use config::{SetupError, TracesConfig};
pub use exporter::{Exporter, RunningExporter, TracedProgram, open};
