//! Which database, and how work gets a connection to it.

use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::connection::Connection;
use crate::readers::Readers;
use crate::writer::{BoxFuture, Extent, Writer};
use crate::{StoreError, schema};

/// One of the two databases.
#[derive(Clone)]
pub(crate) enum Database {
    /// One writer and, but for a database in memory, some readers.
    Sqlite { writer: Writer, readers: Option<Arc<Readers>> },
    /// A pool; every write is a transaction.
    Postgres(PgPool),
}

/// How long a writer waits for another process that writes the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long work waits for a free connection to PostgreSQL.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// So many connections to PostgreSQL at most.
const POSTGRES_CONNECTIONS: u32 = 16;
/// Rows that a query may be ahead of whoever takes them: a page's.
const ROWS_AHEAD: usize = 1024;

impl Database {
    pub(crate) async fn open(url: &str) -> Result<Database, StoreError> {
        match url.split_once(':') {
            Some(("sqlite", _)) => open_sqlite(url).await,
            Some(("postgres" | "postgresql", _)) => open_postgres(url).await,
            _ => Err(StoreError::BadUrl),
        }
    }

    /// Has `work` done, which only reads.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        match self {
            Database::Sqlite { readers: Some(readers), .. } => readers.run(work).await,
            Database::Sqlite { writer, readers: None } => {
                writer.run(Extent::OneStatement, work).await
            }
            Database::Postgres(pool) => {
                work(&mut Connection::Postgres(pool.acquire().await?)).await
            }
        }
    }

    /// Has `work` done, which writes; all of it is committed on return, or nothing.
    pub(crate) async fn write<T, F>(&self, extent: Extent, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        match (self, extent) {
            (Database::Sqlite { writer, .. }, _) => writer.run(extent, work).await,
            (Database::Postgres(pool), Extent::OneStatement) => {
                work(&mut Connection::Postgres(pool.acquire().await?)).await
            }
            (Database::Postgres(pool), Extent::FirstDecides | Extent::AnyDecides) => {
                let mut connection = Connection::PostgresTransaction(pool.begin().await?);
                let outcome = work(&mut connection).await?;
                if let Connection::PostgresTransaction(transaction) = connection {
                    transaction.commit().await?;
                }
                Ok(outcome)
            }
        }
    }
}

async fn open_sqlite(url: &str) -> Result<Database, StoreError> {
    let in_memory = url.contains(":memory:");
    let options = SqliteConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl)?
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .row_buffer_size(ROWS_AHEAD)
        .disable_statement_logging();
    if !in_memory {
        let path = options.get_filename();
        create_private(path)
            .map_err(|source| StoreError::CannotCreate { path: path.to_owned(), source })?;
    }
    // WAL with NORMAL: a killed program loses nothing, a power cut at most the last moments.
    let writing =
        options.clone().journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Normal);

    let mut connection = Connection::Sqlite(writing.connect().await?);
    connection.execute("BEGIN IMMEDIATE", Vec::new()).await?;
    schema::migrate(&mut connection).await?;
    connection.execute("COMMIT", Vec::new()).await?;

    let readers = (!in_memory).then(|| Arc::new(Readers::new(options.read_only(true))));
    Ok(Database::Sqlite { writer: Writer::start(connection), readers })
}

/// Makes the file so that only its owner can read it: it holds the BMCs' passwords.
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // SQLite gives the files beside it the same mode.
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

async fn open_postgres(url: &str) -> Result<Database, StoreError> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl)?
        .disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await?;
    let database = Database::Postgres(pool);
    database
        .write(Extent::FirstDecides, |connection| Box::pin(schema::migrate(connection)))
        .await?;
    Ok(database)
}
