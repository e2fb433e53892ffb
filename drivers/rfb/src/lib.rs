#![doc = include_str!("../README.md")]

mod server;
mod version;
mod viewer;

pub use server::{RfbError, Server};
pub use viewer::Viewer;
