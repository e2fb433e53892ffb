#![doc = include_str!("../README.md")]

mod recorder;
mod table;

pub use recorder::Recorder;

/// The SQL that creates the tables of the trail, as one version of a service's schema.
pub const SCHEMA: &str = include_str!("schema.sql");
