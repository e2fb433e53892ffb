#![doc = include_str!("../README.md")]

pub mod agent;
pub mod api;
pub mod certificate;
pub mod commands;
pub mod conductor;
pub mod disk;
pub mod efi;
mod error;
pub mod heartbeat;
pub mod hints;
pub mod image;
pub mod inventory;
pub mod logs;
pub mod machine;
pub mod meter;
pub mod raid;
pub mod rescue;
pub mod root;
#[cfg(test)]
mod scratch;
pub mod skipped;
pub mod steps;
pub mod task;
