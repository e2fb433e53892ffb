#![doc = include_str!("../README.md")]

pub mod canary;
mod keep;
mod search;

pub use keep::{keep, listen, note};
pub use search::{Find, Search};
