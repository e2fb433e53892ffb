#![doc = include_str!("../README.md")]

mod connection;
mod database;
mod error;
mod query;
mod readers;
mod schema;
mod store;
mod table;
mod writer;

pub use error::StoreError;
pub use store::Store;
