//! A connection to either database, and the rows of its results.
//!
//! All statements use the SQL that both databases understand, with `$1` for the first value. Columns are read by position.

use jiff::Timestamp;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr};
use tokio::time::timeout;

use crate::sqlite::SqliteRow;
use crate::{PostgresConnection, Result, SqlError, SqliteConnection, StoreError, Value, values};

/// A connection, inside a transaction if the caller asked for one.
pub enum Connection {
    /// Connected to a file or an in-memory database.
    Sqlite(SqliteConnection),
    /// Connected to a server.
    Postgres(PostgresConnection),
}

/// A row of a result.
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Runs `$sql` with `$values` on a connection to PostgreSQL. `$run` is the method of the query to call; `$convert` converts the result.
macro_rules! send {
    ($connection:expr, $sql:expr, $values:expr, $run:ident, $convert:expr) => {{
        let query = $values.into_iter().fold(sqlx::query($sql), bind);
        let (open, limit) = $connection.begin_statement();
        let result = timeout(limit, query.$run(open)).await;
        $connection.end_statement(result).map($convert).map_err(SqlError::from)
    }};
}

impl Connection {
    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<u64, SqlError> {
        match self {
            Connection::Sqlite(it) => it.execute(sql.into_sql_str().as_str(), &values),
            Connection::Postgres(it) => {
                send!(it, sql, values, execute, |done| done.rows_affected())
            }
        }
    }

    /// Returns all rows of a query.
    pub async fn rows(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, SqlError> {
        match self {
            Connection::Sqlite(it) => {
                let rows = it.rows(sql.into_sql_str().as_str(), &values, usize::MAX)?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Connection::Postgres(it) => {
                let convert = |rows: Vec<PgRow>| rows.into_iter().map(Row::Postgres).collect();
                send!(it, sql, values, fetch_all, convert)
            }
        }
    }

    /// Returns the row of a query that finds at most one.
    pub async fn row(
        &mut self,
        sql: impl SqlSafeStr,
        values: Vec<Value>,
    ) -> Result<Option<Row>, SqlError> {
        match self {
            Connection::Sqlite(it) => {
                let rows = it.rows(sql.into_sql_str().as_str(), &values, 1)?;
                Ok(rows.into_iter().next().map(Row::Sqlite))
            }
            Connection::Postgres(it) => {
                send!(it, sql, values, fetch_optional, |row: Option<PgRow>| row.map(Row::Postgres))
            }
        }
    }

    /// Runs several statements that take no values and return no rows.
    pub async fn script(&mut self, sql: String) -> Result<(), SqlError> {
        match self {
            Connection::Sqlite(connection) => connection.script(&sql),
            Connection::Postgres(connection) => {
                let (open, limit) = connection.begin_statement();
                let script = sqlx::raw_sql(AssertSqlSafe(sql)).execute(open);
                let result = timeout(limit, script).await;
                Ok(connection.end_statement(result).map(drop)?)
            }
        }
    }

    /// Returns the time by the one clock that all programs on the database share: PostgreSQL's. SQLite has one program, whose clock says
    /// `own`.
    pub async fn clock(&mut self, own: Timestamp) -> Result<Timestamp> {
        const CLOCK: &str =
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
        match self {
            #[cfg(any(test, feature = "shared-sqlite"))]
            Connection::Sqlite(it) => Ok(crate::shared::clock(it).unwrap_or(own)),
            #[cfg(not(any(test, feature = "shared-sqlite")))]
            Connection::Sqlite(_) => Ok(own),
            Connection::Postgres(_) => {
                self.row(CLOCK, values![]).await?.map_or(Ok(own), |row| row.time("clock", 0))
            }
        }
    }

    /// Takes the lock for writes of many rows until the end of the transaction, so that two such writers cannot deadlock on each other's
    /// rows.
    ///
    /// SQLite needs no lock, because it has one writer.
    pub async fn lock_bulk_writes(&mut self) -> Result<(), SqlError> {
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
    pub async fn lock_key(&mut self, key: i64) -> Result<(), SqlError> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(_) => {
                self.row("SELECT pg_advisory_xact_lock($1)", values![key]).await.map(drop)
            }
        }
    }

    /// Like [`Connection::lock_key`], with a name as the key.
    pub async fn lock_name(&mut self, name: &str) -> Result<(), SqlError> {
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

type PostgresQuery<'q> = sqlx::query::Query<'q, Postgres, <Postgres as sqlx::Database>::Arguments>;

fn bind(query: PostgresQuery<'_>, value: Value) -> PostgresQuery<'_> {
    match value {
        Value::Int(int) => query.bind(int),
        Value::Text(text) => query.bind(text),
    }
}

impl Row {
    /// Reads an integer; NULL is an error.
    pub fn int(&self, column: usize) -> Result<i64, SqlError> {
        self.optional_int(column)?.ok_or(SqlError::Null { column })
    }

    /// Reads an integer; NULL is `None`.
    pub fn optional_int(&self, column: usize) -> Result<Option<i64>, SqlError> {
        match self {
            Row::Sqlite(row) => row.int(column),
            Row::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Reads text; NULL is an error.
    pub fn text(&self, column: usize) -> Result<&str, SqlError> {
        self.optional_text(column)?.ok_or(SqlError::Null { column })
    }

    /// Reads text; NULL is `None`.
    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, SqlError> {
        match self {
            Row::Sqlite(row) => row.text(column),
            Row::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Whether the column has this value.
    pub fn holds(&self, column: usize, value: &Value) -> Result<bool, SqlError> {
        match value {
            Value::Int(int) => Ok(self.optional_int(column)? == *int),
            Value::Text(text) => Ok(self.optional_text(column)? == text.as_deref()),
        }
    }

    /// Parses a text column as a `T`; `table` names the table in the error.
    pub fn parse<T>(&self, table: &'static str, column: usize) -> Result<T>
    where
        T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let text = self.text(column)?;
        text.parse().map_err(|error: T::Err| StoreError::corrupt(table, text, error))
    }

    /// Parses a JSON column as a `T`; column 0 holds the id that the error names.
    pub fn json<T>(&self, table: &'static str, column: usize) -> Result<T>
    where
        T: serde::de::DeserializeOwned,
    {
        serde_json::from_str(self.text(column)?)
            .map_err(|error| StoreError::corrupt(table, self.text(0).unwrap_or_default(), error))
    }

    /// Reads a time; NULL is an error.
    pub fn time(&self, table: &'static str, column: usize) -> Result<Timestamp> {
        let micros = self.int(column)?;
        time(micros).map_err(|error| StoreError::corrupt(table, &micros.to_string(), error))
    }

    /// Reads a time; NULL is `None`.
    pub fn optional_time(&self, table: &'static str, column: usize) -> Result<Option<Timestamp>> {
        let Some(micros) = self.optional_int(column)? else { return Ok(None) };
        time(micros)
            .map(Some)
            .map_err(|error| StoreError::corrupt(table, &micros.to_string(), error))
    }
}

fn time(micros: i64) -> Result<Timestamp, jiff::Error> {
    Timestamp::from_microsecond(micros)
}
