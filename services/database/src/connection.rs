//! A connection to either database, and the few types of values that pass through it.
//!
//! All statements use the SQL that both databases understand, with `$1` for the first value. Columns are read by position.

use jiff::Timestamp;
use newtype_uuid::{TypedUuid, TypedUuidKind};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{PostgresConnection, StoreError};

/// A connection, inside a transaction if the caller asked for one.
pub enum Connection {
    /// Connected to a file or an in-memory database.
    Sqlite(SqliteConnection),
    /// Connected to a server.
    Postgres(PostgresConnection),
}

/// A parameter of a statement. Ids are stored as text, times as microseconds since 1970, booleans as 0 and 1.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, a time or a boolean.
    Int(Option<i64>),
    /// Text or an id.
    Text(Option<String>),
}

/// A row of a result.
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Converts the arguments to a vector of [`Value`]s; the first is `$1`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

/// Runs `$sql` with `$values` on `$connection`. `$run` is the method of the query to call; `$sqlite` and `$postgres` convert the result.
macro_rules! send {
    ($connection:expr, $sql:expr, $values:expr, $run:ident, $sqlite:expr, $postgres:expr) => {
        match $connection {
            Connection::Sqlite(connection) => {
                let query = $values.into_iter().fold(sqlx::query($sql), bind_sqlite);
                query.$run(connection).await.map($sqlite)
            }
            Connection::Postgres(connection) => {
                let query = $values.into_iter().fold(sqlx::query($sql), bind_postgres);
                let (open, limit) = connection.begin_statement();
                let result = timeout(limit, query.$run(open)).await;
                connection.end_statement(result).map($postgres)
            }
        }
    };
}

impl Connection {
    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<u64, sqlx::Error> {
        send!(self, sql, values, execute, |done| done.rows_affected(), |done| done.rows_affected())
    }

    /// Returns all rows of a query.
    pub async fn rows(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        send!(
            self,
            sql,
            values,
            fetch_all,
            |rows| rows.into_iter().map(Row::Sqlite).collect(),
            |rows| rows.into_iter().map(Row::Postgres).collect()
        )
    }

    /// Returns the row of a query that finds at most one.
    pub async fn row(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<Option<Row>, sqlx::Error> {
        send!(self, sql, values, fetch_optional, |row| row.map(Row::Sqlite), |row| row
            .map(Row::Postgres))
    }

    /// Runs several statements that take no values and return no rows.
    pub async fn script(&mut self, sql: String) -> Result<(), sqlx::Error> {
        let script = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Connection::Sqlite(connection) => script.execute(connection).await.map(drop),
            Connection::Postgres(connection) => {
                let (open, limit) = connection.begin_statement();
                let result = timeout(limit, script.execute(open)).await;
                connection.end_statement(result).map(drop)
            }
        }
    }

    /// Takes the lock for writes of many rows until the end of the transaction, so that two such writers cannot deadlock on each other's
    /// rows.
    ///
    /// SQLite needs no lock, because it has one writer.
    pub async fn lock_bulk_writes(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) => {
                self.row("SELECT pg_advisory_xact_lock($1)", values![WRITE_ALONE]).await.map(drop)
            }
        }
    }

    /// Takes the lock `key` until the end of the transaction. Sequence numbers that are assigned under the lock therefore become visible in
    /// the order of assignment.
    ///
    /// SQLite needs no lock, because it has one writer.
    pub async fn lock_key(&mut self, key: i64) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) => {
                self.row("SELECT pg_advisory_xact_lock($1)", values![key]).await.map(drop)
            }
        }
    }

    /// Like [`Connection::lock_key`], with a name as the key.
    pub async fn lock_name(&mut self, name: &str) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) => {
                const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
                self.row(LOCK, values![name, WRITE_ALONE]).await.map(drop)
            }
        }
    }
}

/// The number of the PostgreSQL advisory lock for large writes: the bytes of `bedplate`.
const WRITE_ALONE: i64 = 0x6265_6470_6c61_7465;

type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, <Sqlite as sqlx::Database>::Arguments>;
type PostgresQuery<'q> = sqlx::query::Query<'q, Postgres, <Postgres as sqlx::Database>::Arguments>;

fn bind_sqlite(query: SqliteQuery<'_>, value: Value) -> SqliteQuery<'_> {
    match value {
        Value::Int(int) => query.bind(int),
        Value::Text(text) => query.bind(text),
    }
}

fn bind_postgres(query: PostgresQuery<'_>, value: Value) -> PostgresQuery<'_> {
    match value {
        Value::Int(int) => query.bind(int),
        Value::Text(text) => query.bind(text),
    }
}

impl Row {
    /// Reads an integer; NULL is an error.
    pub fn int(&self, column: usize) -> Result<i64, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Reads an integer; NULL is `None`.
    pub fn optional_int(&self, column: usize) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Reads text; NULL is an error.
    pub fn text(&self, column: usize) -> Result<&str, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Reads text; NULL is `None`.
    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Parses a text column as a `T`; `table` names the table in the error.
    pub fn parse<T>(&self, table: &'static str, column: usize) -> Result<T, StoreError>
    where
        T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let text = self.text(column)?;
        text.parse().map_err(|error: T::Err| StoreError::corrupt(table, text, error))
    }

    /// Parses a JSON column as a `T`; column 0 holds the id that the error names.
    pub fn json<T>(&self, table: &'static str, column: usize) -> Result<T, StoreError>
    where
        T: serde::de::DeserializeOwned,
    {
        serde_json::from_str(self.text(column)?)
            .map_err(|error| StoreError::corrupt(table, self.text(0).unwrap_or_default(), error))
    }

    /// Reads a time; NULL is an error.
    pub fn time(&self, table: &'static str, column: usize) -> Result<Timestamp, StoreError> {
        let micros = self.int(column)?;
        time(micros).map_err(|error| StoreError::corrupt(table, &micros.to_string(), error))
    }

    /// Reads a time; NULL is `None`.
    pub fn optional_time(
        &self,
        table: &'static str,
        column: usize,
    ) -> Result<Option<Timestamp>, StoreError> {
        let Some(micros) = self.optional_int(column)? else { return Ok(None) };
        time(micros)
            .map(Some)
            .map_err(|error| StoreError::corrupt(table, &micros.to_string(), error))
    }
}

fn time(micros: i64) -> Result<Timestamp, jiff::Error> {
    Timestamp::from_microsecond(micros)
}

/// Replaces NUL by U+FFFD: PostgreSQL cannot store NUL, and SQLite's functions stop at NUL. JSON documents keep their NULs, which JSON
/// writes as `\u0000`.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Implements the conversion to [`Value`] for a type and for its `Option`.
macro_rules! stored {
    ($($kind:ident: $type:ty => $convert:expr;)*) => { $(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$kind(Some($convert(value)))
            }
        }

        impl From<Option<$type>> for Value {
            fn from(value: Option<$type>) -> Value {
                Value::$kind(value.map($convert))
            }
        }
    )* };
}

stored! {
    Int: i64 => |int| int;
    Int: u32 => i64::from;
    Int: bool => i64::from;
    Int: Timestamp => Timestamp::as_microsecond;
    Text: &str => |text: &str| storable(text.to_owned());
    Text: String => storable;
    Text: Uuid => |id: Uuid| id.to_string();
}

impl<K: TypedUuidKind> From<TypedUuid<K>> for Value {
    fn from(id: TypedUuid<K>) -> Value {
        Value::Text(Some(id.to_string()))
    }
}

impl<K: TypedUuidKind> From<Option<TypedUuid<K>>> for Value {
    fn from(id: Option<TypedUuid<K>>) -> Value {
        Value::Text(id.map(|id| id.to_string()))
    }
}
