#![doc = include_str!("../README.md")]

mod decrypted_secret;
mod error;
mod file;
mod keyring;
mod keys;
mod new_key;
mod registered_keys;
mod stream;
mod usage;

pub use decrypted_secret::DecryptedSecret;
pub use error::SealError;
pub use keyring::{KeyFileError, Keyring};
pub use keys::{DerivedToken, Purpose, SealingKeys, id_of, is_sealed, random};
pub use new_key::NewKey;
pub use registered_keys::{KeyMismatch, RegisteredKey};
pub use stream::{StreamOpener, StreamSealer};
pub use usage::{KeyUsage, RetireError};
