#![doc = include_str!("../README.md")]

pub use crate::cloud::Cloud;
pub use crate::command_line::{Answer, CommandLine};
pub use crate::program::program;
pub use crate::service::Service;

mod cloud;
mod command_line;
mod program;
pub mod python;
pub mod receiver;
mod service;
pub mod wait;
pub mod wire;
