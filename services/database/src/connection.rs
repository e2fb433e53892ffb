//! One connection to either database, and the few kinds of value that go through it.
//!
//! Everything is written in the SQL both understand, with `$1` for the first value. Columns are read by place.

use jiff::Timestamp;
use newtype_uuid::{TypedUuid, TypedUuidKind};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr, Transaction};
use uuid::Uuid;

use crate::StoreError;

/// A connection, in a transaction where one was asked for.
pub enum Connection {
    /// To a file, or to memory.
    Sqlite(SqliteConnection),
    /// To a server, each statement for itself.
    Postgres(PoolConnection<Postgres>),
    /// To a server, all statements together.
    PostgresTransaction(Transaction<'static, Postgres>),
}

/// A value on its way in. Ids are text, times are microseconds since 1970, truths are 0 and 1.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number, a time, a truth.
    Int(Option<i64>),
    /// Text, an id.
    Text(Option<String>),
}

/// A row on its way out.
pub enum Row {
    /// SQLite's.
    Sqlite(SqliteRow),
    /// PostgreSQL's.
    Postgres(PgRow),
}

/// The values of a statement, the first for `$1`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

/// Sends `$sql` with `$values` by `$connection`; `$run` says how, `$wrap` what becomes of the answer.
macro_rules! send {
    ($connection:expr, $sql:expr, $values:expr, $run:ident, $sqlite:expr, $postgres:expr) => {
        match $connection {
            Connection::Sqlite(connection) => {
                let query = $values.into_iter().fold(sqlx::query($sql), bind_sqlite);
                query.$run(connection).await.map($sqlite)
            }
            Connection::Postgres(connection) => {
                let query = $values.into_iter().fold(sqlx::query($sql), bind_postgres);
                query.$run(&mut **connection).await.map($postgres)
            }
            Connection::PostgresTransaction(transaction) => {
                let query = $values.into_iter().fold(sqlx::query($sql), bind_postgres);
                query.$run(&mut **transaction).await.map($postgres)
            }
        }
    };
}

impl Connection {
    /// Runs a statement; the answer is how many rows it changed.
    pub async fn execute(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<u64, sqlx::Error> {
        send!(self, sql, values, execute, |done| done.rows_affected(), |done| done.rows_affected())
    }

    /// All rows of a query.
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

    /// The row of a query that has at most one.
    pub async fn row(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<Option<Row>, sqlx::Error> {
        send!(self, sql, values, fetch_optional, |row| row.map(Row::Sqlite), |row| row
            .map(Row::Postgres))
    }

    /// Runs several statements that take no values and give no rows.
    pub async fn script(&mut self, sql: String) -> Result<(), sqlx::Error> {
        let script = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Connection::Sqlite(connection) => script.execute(connection).await.map(drop),
            Connection::Postgres(connection) => script.execute(&mut **connection).await.map(drop),
            Connection::PostgresTransaction(transaction) => {
                script.execute(&mut **transaction).await.map(drop)
            }
        }
    }

    /// Waits for all others that write many rows at once, so that no two wait for each other's rows.
    ///
    /// SQLite has one writer anyway.
    pub async fn write_alone(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) | Connection::PostgresTransaction(_) => {
                self.row("SELECT pg_advisory_xact_lock($1)", values![WRITE_ALONE]).await.map(drop)
            }
        }
    }

    /// Waits for all others that write under `key`, until whose end nobody else does: what counts up for it is then
    /// committed in the order it was given out.
    ///
    /// SQLite has one writer anyway.
    pub async fn write_in_turn(&mut self, key: i64) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) | Connection::PostgresTransaction(_) => {
                self.row("SELECT pg_advisory_xact_lock($1)", values![key]).await.map(drop)
            }
        }
    }

    /// As [`Connection::write_in_turn`], under a name.
    pub async fn write_in_turn_as(&mut self, name: &str) -> Result<(), sqlx::Error> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) | Connection::PostgresTransaction(_) => {
                const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
                self.row(LOCK, values![name, WRITE_ALONE]).await.map(drop)
            }
        }
    }
}

/// PostgreSQL's advisory locks are numbers: this one is the bytes of `bedplate`.
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
    /// A number.
    pub fn int(&self, column: usize) -> Result<i64, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// A number, where there is one.
    pub fn optional_int(&self, column: usize) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Text.
    pub fn text(&self, column: usize) -> Result<&str, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Text, where there is some.
    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, sqlx::Error> {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
    }

    /// Text of `table` that has to be a `T`.
    pub fn parse<T>(&self, table: &'static str, column: usize) -> Result<T, StoreError>
    where
        T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let text = self.text(column)?;
        text.parse().map_err(|error: T::Err| StoreError::corrupt(table, text, error))
    }

    /// JSON of `table` that has to be a `T`; column 0 says in which row.
    pub fn json<T>(&self, table: &'static str, column: usize) -> Result<T, StoreError>
    where
        T: serde::de::DeserializeOwned,
    {
        serde_json::from_str(self.text(column)?)
            .map_err(|error| StoreError::corrupt(table, self.text(0).unwrap_or_default(), error))
    }

    /// A time of `table`.
    pub fn time(&self, table: &'static str, column: usize) -> Result<Timestamp, StoreError> {
        let micros = self.int(column)?;
        time(micros).map_err(|error| StoreError::corrupt(table, &micros.to_string(), error))
    }

    /// A time of `table`, where there is one.
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

/// Text without NUL, which PostgreSQL cannot hold and at which SQLite's functions stop: U+FFFD takes its place. JSON
/// writes NUL as `\u0000`, so documents keep theirs.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// How each type is stored, set or not.
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
