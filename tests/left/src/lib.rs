#![doc = include_str!("../README.md")]

pub mod canary;
pub mod control;
mod decoded;
mod keep;
mod search;
mod spelling;

pub use keep::{keep, keep_database, know, known, listen, note};
pub use search::{Find, Search};
