#![doc = include_str!("../README.md")]

pub mod columns;
pub mod conductors;
mod connection;
mod database;
pub mod documents;
mod error;
mod integrity;
mod migrate;
mod notifications;
pub mod outbox;
mod postgres;
mod preceding;
pub mod program;
mod query;
mod readers;
#[cfg(any(test, feature = "scratch"))]
pub mod scratch;
pub mod seals;
mod session;
#[cfg(any(test, feature = "shared-sqlite"))]
pub mod shared;
mod size_limit;
mod sqlite;
pub mod table;
mod tripwire;
mod value;
pub mod webhook_events;
mod work;
mod writer;

pub use columns::Column;
pub use connection::{Connection, Row};
pub use database::{Database, SchemaVersion};
pub use error::{Result, SqlError, StoreError};
pub use metrics::WriteMetrics;
pub use migrate::Schema;
pub use notifications::{MAX_NOTIFICATION, Notifications};
pub use preceding::{FindPreceding, Preceding};
pub use query::{Key, Query, Tie};
pub use session::PostgresConnection;
pub use size_limit::{FieldSizes, SizeLimit};
pub use sqlite::SqliteConnection;
pub use sqlx::AssertSqlSafe;
pub use tripwire::{Point, Side, Tripwire};
pub use value::Value;
pub use work::{BoxFuture, WriteKind};
