#![doc = include_str!("../README.md")]

pub mod canary;
pub mod control;
mod decoded;
mod encodings;
mod keep;
mod search;

pub use keep::{add_secrets, keep, keep_database, keep_logs, keep_text, known};
pub use search::{Find, Search};
