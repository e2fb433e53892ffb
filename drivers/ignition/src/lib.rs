#![doc = include_str!("../README.md")]

pub mod build;
pub mod check;
mod document;
mod lists;
mod merge;
mod user_data;

pub use ignition_config::v3_3::{
    Config, Directory, Dropin, File, Ignition, IgnitionConfig, Link, Resource, Security,
    SecurityTls, Storage, Systemd, Unit, Verification,
};

pub use check::{Mistake, check};
pub use document::{Document, DocumentError, Limits};
pub use merge::merge;
pub use user_data::{NOVA_LIMIT, TooLong, UserData, compress, json};

/// The version of the specification that this crate writes: every Ignition since 2.11 reads it.
pub const SPEC: &str = "3.3.0";
