#![doc = include_str!("../README.md")]

mod bounds;
mod secrets;
mod store;
mod table;

pub use database::table::{Listed, Part, Position};
pub use database::{SchemaVersion, StoreError, Tripwire};
pub use secrets::{SecretError, Secrets};
pub use store::{Resealed, Reserved, SCHEMA, SeenPower, Store};
pub use table::{Leased, Pool, ProfileRow, Seen, ShardCount, Tally};
