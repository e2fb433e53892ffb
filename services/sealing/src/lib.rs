#![doc = include_str!("../README.md")]

mod error;
mod file;
mod keyring;
mod keys;
mod known;
mod opened;
mod usage;

pub use error::SealError;
pub use keyring::{KeyFileError, Keyring};
pub use keys::{Derived, Purpose, SealingKeys, id_of, is_sealed, random};
pub use known::{KnownKey, LostKey};
pub use opened::Opened;
pub use usage::{KeyUse, RetireError};
