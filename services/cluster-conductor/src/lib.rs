#![doc = include_str!("../README.md")]

mod cloud;
mod handle;
mod keys;
mod seal;
mod turn;

pub use handle::{Conductor, KeysError, Preview, Settings};
pub use seal::{SealError, SealingKeys};
