#![doc = include_str!("../README.md")]

mod store;
mod table;

pub use database::StoreError;
pub use store::{Reserved, SeenPower, Store};
