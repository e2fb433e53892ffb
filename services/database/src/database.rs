//! Which database, and how work gets a connection to it.

use std::any::type_name;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::readers::Readers;
use crate::writer::{BoxFuture, Extent, Writer};
use crate::{Connection, Schema, StoreError, Tripwire, integrity, migrate};

/// One of the two databases. Clones share it.
#[derive(Clone)]
pub struct Database {
    backend: Backend,
    tripwire: Tripwire,
}

#[derive(Clone)]
enum Backend {
    /// One writer and, but for a database in memory, some readers.
    Sqlite { writer: Writer, readers: Option<Arc<Readers>> },
    /// A pool; every write is a transaction.
    Postgres(PgPool),
}

/// Which version tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// In the database.
    pub found: i64,
    /// The last that this program knows.
    pub known: i64,
}

/// How long a writer waits for another process that writes the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long work waits for a free connection to PostgreSQL.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// So many connections to PostgreSQL at most.
const POSTGRES_CONNECTIONS: u32 = 16;
/// Whatever the server's customary isolation: who has waited for a lock sees what was committed meanwhile.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// After so many pages of 4 KiB the log is written into the file, which takes tens of milliseconds in which nothing else is written. SQLite's
/// own is 1000, which a busy service writes many times a second.
const CHECKPOINT_PAGES: &str = "4000";
/// Rows that a query may be ahead of whoever takes them: a page's.
const ROWS_AHEAD: usize = 1024;

impl Database {
    /// Opens `sqlite:///path/file.db`, `sqlite::memory:` or `postgres://user@host/database`, and brings its tables up
    /// to the last version of `schema`.
    ///
    /// A file that is not there is made, for its owner's eyes only. What writes it runs in the tokio runtime that opens
    /// it; once that is gone, every write is refused as `Closing`.
    pub async fn open(url: &str, schema: Schema) -> Result<Database, StoreError> {
        let backend = match url.split_once(':') {
            Some(("sqlite", _)) => open_sqlite(url, schema).await?,
            Some(("postgres" | "postgresql", _)) => open_postgres(url, schema).await?,
            _ => return Err(StoreError::BadUrl),
        };
        Ok(Database { backend, tripwire: Tripwire::default() })
    }

    /// The same, whose writes are points of this tripwire.
    pub fn with_tripwire(self, tripwire: Tripwire) -> Database {
        Database { tripwire, ..self }
    }

    /// What a test has done at each write.
    pub fn tripwire(&self) -> &Tripwire {
        &self.tripwire
    }

    /// Looks through all of a database file, if there is one, and changes nothing. A server's data are the server's business.
    pub async fn check(url: &str) -> Result<(), StoreError> {
        if url.starts_with("sqlite:") { integrity::check_file(url).await } else { Ok(()) }
    }

    /// Which of the two it is.
    pub fn kind(&self) -> &'static str {
        match &self.backend {
            Backend::Sqlite { .. } => "sqlite",
            Backend::Postgres(_) => "postgresql",
        }
    }

    /// Which version its tables have now: a newer program may have brought them further meanwhile.
    pub async fn schema_version(&self, schema: Schema) -> Result<SchemaVersion, StoreError> {
        let found = self.read(|connection| Box::pin(migrate::found(connection))).await?;
        Ok(SchemaVersion { found, known: schema.len() as i64 })
    }

    /// Has `work` done, which only reads.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite { readers: Some(readers), .. } => readers.run(work).await,
            Backend::Sqlite { writer, readers: None } => {
                writer.run(Extent::OneStatement, work).await
            }
            Backend::Postgres(pool) => work(&mut Connection::Postgres(pool.acquire().await?)).await,
        }
    }

    /// Has `work` done, which writes; all of it is committed on return, or nothing.
    pub async fn write<T, F>(&self, extent: Extent, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        self.tripwire.around(type_name::<F>(), self.committed(extent, work)).await
    }

    async fn committed<T, F>(&self, extent: Extent, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        match (&self.backend, extent) {
            (Backend::Sqlite { writer, .. }, _) => writer.run(extent, work).await,
            (Backend::Postgres(pool), Extent::OneStatement) => {
                work(&mut Connection::Postgres(pool.acquire().await?)).await
            }
            (Backend::Postgres(pool), Extent::FirstDecides | Extent::AnyDecides) => {
                let transaction = pool.begin_with(BEGIN).await?;
                let mut connection = Connection::PostgresTransaction(transaction);
                let outcome = work(&mut connection).await?;
                if let Connection::PostgresTransaction(transaction) = connection {
                    transaction.commit().await?;
                }
                Ok(outcome)
            }
        }
    }
}

async fn open_sqlite(url: &str, schema: Schema) -> Result<Backend, StoreError> {
    let in_memory = url.contains(":memory:");
    let options = SqliteConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl)?
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        // What a statement may have to undo is no file of its own.
        .pragma("temp_store", "MEMORY")
        .row_buffer_size(ROWS_AHEAD)
        .disable_statement_logging();
    if !in_memory {
        let path = options.get_filename();
        create_private(path)
            .map_err(|source| StoreError::CannotCreate { path: path.to_owned(), source })?;
    }
    // WAL with FULL: what was answered outlasts a power cut. With NORMAL the last moments of the audit trail and of the ledgers would be lost
    // by it, and machines in a cloud with them. What is asked for at the same time shares a transaction, and so one wait for the disk.
    let writing = options
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES);

    let path = options.get_filename().to_owned();
    let connected = writing.connect().await.map_err(|error| integrity::damaged(&path, error));
    let mut connection = connected?;
    if !in_memory {
        integrity::check_for_a_while(&mut connection, &path).await?;
    }
    let mut connection = Connection::Sqlite(connection);
    connection.execute("BEGIN IMMEDIATE", Vec::new()).await?;
    migrate(&mut connection, schema).await?;
    connection.execute("COMMIT", Vec::new()).await?;

    let readers = (!in_memory).then(|| Arc::new(Readers::new(options.read_only(true))));
    Ok(Backend::Sqlite { writer: Writer::start(connection), readers })
}

/// Makes the file so that only its owner can read it: it holds passwords.
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // SQLite gives the files beside it the same mode.
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

async fn open_postgres(url: &str, schema: Schema) -> Result<Backend, StoreError> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl)?
        .disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await?;
    let backend = Backend::Postgres(pool);
    let database = Database { backend, tripwire: Tripwire::default() };
    database
        .write(Extent::FirstDecides, move |connection| Box::pin(migrate(connection, schema)))
        .await?;
    Ok(database.backend)
}
