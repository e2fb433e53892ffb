#![doc = include_str!("../README.md")]

mod bound;
mod connection;
mod database;
mod error;
mod integrity;
mod migrate;
pub mod outbox;
mod postgres;
mod query;
mod readers;
#[cfg(any(test, feature = "scratch"))]
pub mod scratch;
pub mod table;
mod tripwire;
mod writer;

pub use bound::{Bound, Sizes};
pub use connection::{Connection, Row, Value};
pub use database::{Database, SchemaVersion};
pub use error::StoreError;
pub use migrate::Schema;
pub use postgres::PostgresConnection;
pub use query::{Key, Query};
pub use sqlx::{AssertSqlSafe, Error as SqlError};
pub use tripwire::{Point, Side, Tripwire};
pub use writer::{BoxFuture, Extent};

use migrate::migrate;
