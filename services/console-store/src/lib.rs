#![doc = include_str!("../README.md")]

mod store;
mod table;

pub use database::{Result, StoreError};
pub use store::{SCHEMA, Store};
pub use table::guess::GuessLimit;
pub use table::session::{NewSession, SessionLimits, SessionUse};
