#![doc = include_str!("../README.md")]

mod recorder;
mod table;

pub use recorder::Recorder;

/// The version of a service's tables in which the trail comes.
pub const TABLES: &str = include_str!("schema.sql");
