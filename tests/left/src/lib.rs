#![doc = include_str!("../README.md")]

pub mod canary;
mod keep;
mod search;
mod spelling;

pub use keep::{keep, keep_database, know, known, listen, note};
pub use search::{Find, Search};
