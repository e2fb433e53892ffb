#![doc = include_str!("../README.md")]

pub mod columns;
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
pub mod seals;
mod session;
mod size_limit;
pub mod table;
mod tripwire;
mod work;
mod writer;

pub use columns::Column;
pub use connection::{Connection, Row, Value};
pub use database::{Database, SchemaVersion};
pub use error::StoreError;
pub use migrate::Schema;
pub use query::{Key, Query};
pub use session::PostgresConnection;
pub use size_limit::{FieldSizes, SizeLimit};
pub use sqlx::{AssertSqlSafe, Error as SqlError};
pub use tripwire::{Point, Side, Tripwire};
pub use work::{BoxFuture, WriteKind};
