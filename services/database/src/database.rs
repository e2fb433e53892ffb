//! Opens SQLite or PostgreSQL, and gives work a connection.

use std::any::type_name;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use metrics::WriteMetrics;
use spans::{Span, SpanKind};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::time::sleep;

use crate::postgres::Pool;
use crate::preceding::PrecedingFinder;
use crate::readers::Readers;
#[cfg(any(test, feature = "shared-sqlite"))]
use crate::shared::SharedFile;
use crate::sqlite::{BUSY_TIMEOUT, SqlitePlace};
use crate::writer::Writer;
use crate::{
    BoxFuture, Connection, FindPreceding, Notifications, Result, Schema, SqliteConnection,
    StoreError, Tripwire, WriteKind, integrity, migrate, reading, values,
};

/// A SQLite or PostgreSQL database. Clones share the connections.
#[derive(Clone)]
pub struct Database {
    backend: Backend,
    schema: Schema,
    /// The version of the tables, as far as this program has migrated them or found them.
    version: Arc<AtomicI64>,
    tripwire: Tripwire,
    writes: WriteMetrics,
    preceding: PrecedingFinder,
}

#[derive(Clone)]
enum Backend {
    /// One writer and several readers; an in-memory database has no readers, because each connection would see its own database.
    Sqlite {
        writer: Writer,
        readers: Option<Arc<Readers>>,
        #[cfg(any(test, feature = "shared-sqlite"))]
        shared: Option<Arc<SharedFile>>,
    },
    Postgres(Arc<Pool>),
}

/// The schema version of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The version of the tables in the database.
    pub found: i64,
    /// The newest version that this program knows.
    pub known: i64,
}

/// The pause before another attempt to open a locked file.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// How long to try to migrate a PostgreSQL database whose tables others use, and the pause before each further attempt.
const MIGRATION_ATTEMPTS: Duration = Duration::from_secs(60);
const MIGRATION_PAUSE: Duration = Duration::from_millis(250);

/// The time that PostgreSQL may take to give a connection, and for each statement, unless another timeout is configured.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

impl Database {
    /// Opens `sqlite:///path/file.db`, `sqlite::memory:` or `postgres://user@host/database`, and migrates its tables to the newest version
    /// of `schema`, as far as older programs on a PostgreSQL database permit. A database that a newer program has migrated is opened, unless
    /// that program has recorded that older ones cannot work on it.
    ///
    /// A missing file is created, readable only by its owner. The SQLite writer is a thread, which ends after the last clone of the database
    /// was dropped. Queries of SQLite run on the thread that polls them.
    pub async fn open(url: &str, schema: Schema) -> Result<Database> {
        Database::open_within(url, schema, SERVER_TIMEOUT).await
    }

    /// Opens a database as [`Database::open`] does, with another timeout for PostgreSQL.
    pub async fn open_within(url: &str, schema: Schema, timeout: Duration) -> Result<Database> {
        let (backend, version) = match url.split_once(':') {
            Some(("sqlite", _)) => open_sqlite(url, schema).await?,
            #[cfg(any(test, feature = "shared-sqlite"))]
            Some(("shared-sqlite", place)) => open_shared(url, place, schema).await?,
            Some(("postgres" | "postgresql", _)) => open_postgres(url, schema, timeout).await?,
            _ => return Err(StoreError::BadUrl),
        };
        Ok(Database {
            backend,
            schema,
            version: Arc::new(version.into()),
            tripwire: Tripwire::default(),
            writes: WriteMetrics::default(),
            preceding: Arc::new(OnceLock::new()),
        })
    }

    /// Returns the same database, with writes that report to this tripwire.
    pub fn with_tripwire(self, tripwire: Tripwire) -> Database {
        Database { tripwire, ..self }
    }

    /// Sets the function that finds the job which precedes a write. Returns `false`, and sets nothing, if the database is PostgreSQL, whose
    /// transactions would wait for each other's jobs.
    pub fn precede_writes(&self, find: Box<FindPreceding>) -> bool {
        !self.is_shared() && self.preceding.set(find).is_ok()
    }

    /// Returns the same database, with writes that are counted here.
    pub fn with_write_metrics(self, writes: WriteMetrics) -> Database {
        Database { writes, ..self }
    }

    /// The tripwire that a test has set; disarmed by default.
    pub fn tripwire(&self) -> &Tripwire {
        &self.tripwire
    }

    /// Checks every page of a SQLite file, if the file exists, and changes nothing. PostgreSQL checks its own data, so nothing is done for
    /// a server.
    pub async fn check(url: &str) -> Result<()> {
        if url.starts_with("sqlite:") { integrity::check_file(url) } else { Ok(()) }
    }

    /// Returns the file of a SQLite database; `None` for PostgreSQL, for a database in memory, and for a URL that names no database.
    pub fn file(url: &str) -> Option<PathBuf> {
        match SqlitePlace::parse(url) {
            Ok(SqlitePlace::File(path)) => Some(path),
            Ok(SqlitePlace::Memory) | Err(_) => None,
        }
    }

    /// The name of the database system: `sqlite` or `postgresql`.
    pub fn kind(&self) -> &'static str {
        match &self.backend {
            Backend::Sqlite { .. } => "sqlite",
            Backend::Postgres(_) => "postgresql",
        }
    }

    /// Whether several programs may work on the database: PostgreSQL.
    pub fn is_shared(&self) -> bool {
        match &self.backend {
            #[cfg(any(test, feature = "shared-sqlite"))]
            Backend::Sqlite { shared: Some(_), .. } => true,
            Backend::Sqlite { .. } => false,
            Backend::Postgres(_) => true,
        }
    }

    /// Sends a notification of at most [`crate::MAX_NOTIFICATION`] bytes to all programs that listen to the channel. SQLite has no others.
    pub async fn notify(&self, channel: &'static str, text: String) -> Result<()> {
        const NOTIFY: &str = "SELECT pg_notify($1, $2)";
        #[cfg(any(test, feature = "shared-sqlite"))]
        if let Backend::Sqlite { shared: Some(shared), .. } = &self.backend {
            shared.notify(channel, text);
            return Ok(());
        }
        if !self.is_shared() {
            return Ok(());
        }
        reading!(self, |c| Ok(c.row(NOTIFY, values![channel, text]).await.map(drop)?))
    }

    /// Listens to a channel, on a connection of its own. Returns `None` for SQLite.
    pub async fn notifications(&self, channel: &str) -> Result<Option<Notifications>> {
        match &self.backend {
            #[cfg(any(test, feature = "shared-sqlite"))]
            Backend::Sqlite { shared: Some(shared), .. } => {
                Ok(Some(Notifications::Shared(shared.notifications(channel))))
            }
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres(pool) => pool.notifications(channel).await.map(Some),
        }
    }

    /// Reads the schema version of the database. A newer program may have migrated the database since it was opened.
    pub async fn schema_version(&self) -> Result<SchemaVersion> {
        let found = self.read(|connection| Box::pin(migrate::found(connection))).await?;
        Ok(SchemaVersion { found, known: self.schema_known() })
    }

    /// Whether the database has reached this schema version, as this program has last seen.
    pub fn has_reached(&self, version: i64) -> bool {
        self.version.load(Ordering::Relaxed) >= version
    }

    /// The newest schema version that this program knows.
    pub(crate) fn schema_known(&self) -> i64 {
        self.schema.len() as i64
    }

    /// Runs the scripts of the schema that waited until older programs ended, if they have ended.
    pub async fn finish_upgrade(&self) -> Result<()> {
        let is_behind = self.version.load(Ordering::Relaxed) < self.schema_known();
        if let Backend::Postgres(pool) = &self.backend
            && is_behind
        {
            self.version.store(migrate_postgres(pool, self.schema).await?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Runs `work`, which only reads.
    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        match &self.backend {
            #[cfg(any(test, feature = "shared-sqlite"))]
            Backend::Sqlite { shared: Some(shared), readers: Some(readers), .. } => {
                shared.read(readers.run(work)).await
            }
            Backend::Sqlite { readers: Some(readers), .. } => readers.run(work).await,
            Backend::Sqlite { writer, readers: None, .. } => {
                writer.run(WriteKind::OneStatement, None, work).await
            }
            Backend::Postgres(pool) => pool.read(work).await,
        }
    }

    /// Runs `work`, which writes, and returns after the commit. Either everything `work` wrote is committed, or nothing.
    pub async fn write<T, F>(&self, extent: WriteKind, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        // The work holds whole records. Without the box, each future around it would have room for them twice.
        let committed = Box::pin(self.committed(extent, work));
        self.tripwire.around(type_name::<F>(), committed).await
    }

    async fn committed<T, F>(&self, extent: WriteKind, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let mut span = Span::child(SpanKind::Client, || function_of(type_name::<F>()));
        span.set("db.system.name", self.kind());
        let timer = self.writes.begin();
        let written = match &self.backend {
            #[cfg(any(test, feature = "shared-sqlite"))]
            Backend::Sqlite { shared: Some(shared), writer, .. } => {
                shared.write(writer.run(extent, None, work)).await
            }
            Backend::Sqlite { writer, .. } => {
                let preceding = self.preceding.get().and_then(|find| find());
                writer.run(extent, preceding, work).await
            }
            Backend::Postgres(pool) => pool.write(extent, work).await,
        };
        let outcome = match &written {
            Ok(_) => "committed",
            Err(error) if error.is_transient() => "failed",
            Err(_) => "refused",
        };
        timer.ended(outcome);
        if written.is_err() {
            span.fail(outcome);
        }
        written
    }
}

/// Returns the name of the function in which a closure is written, from the type of the closure.
fn function_of(closure: &'static str) -> &'static str {
    let path = closure.trim_end_matches("::{{closure}}");
    let mut depth = 0_i32;
    // The arguments of a generic function may be paths themselves.
    let end_of_module = path.rfind(|c: char| {
        depth += match c {
            '>' => 1,
            '<' => -1,
            _ => 0,
        };
        depth == 0 && c == ':'
    });
    let name = end_of_module.map_or(path, |at| &path[at + 1..]);
    name.split('<').next().unwrap_or(name)
}

/// Opens a file, and returns it with the version of its tables.
async fn open_sqlite(url: &str, schema: Schema) -> Result<(Backend, i64)> {
    let place = SqlitePlace::parse(url)?;
    let connection = match &place {
        SqlitePlace::Memory => SqliteConnection::writer(&place)?,
        SqlitePlace::File(path) => {
            create_private(path)
                .map_err(|source| StoreError::CannotCreate { path: path.clone(), source })?;
            let connected = connect(&place).await;
            let mut connection = connected.map_err(|error| integrity::damaged(path, error))?;
            integrity::check_with_timeout(&mut connection, path)?;
            connection
        }
    };
    let mut connection = Connection::Sqlite(connection);
    connection.execute("BEGIN IMMEDIATE", Vec::new()).await?;
    let version = migrate::migrate(&mut connection, schema).await?;
    connection.execute("COMMIT", Vec::new()).await?;

    let readers = match place {
        SqlitePlace::Memory => None,
        SqlitePlace::File(path) => Some(Arc::new(Readers::new(path))),
    };
    let writer = Writer::start(connection).map_err(StoreError::NoThread)?;
    let backend = Backend::Sqlite {
        writer,
        readers,
        #[cfg(any(test, feature = "shared-sqlite"))]
        shared: None,
    };
    Ok((backend, version))
}

#[cfg(any(test, feature = "shared-sqlite"))]
async fn open_shared(url: &str, place: &str, schema: Schema) -> Result<(Backend, i64)> {
    let opened = open_sqlite(&format!("sqlite:{place}"), schema).await?;
    let (Backend::Sqlite { writer, readers, .. }, version) = opened else {
        return Err(StoreError::BadUrl);
    };
    Ok((Backend::Sqlite { writer, readers, shared: Some(SharedFile::of(url)) }, version))
}

/// Connects, and repeats this while the file is locked. SQLite waits for locks by itself, except while two programs switch a new file to WAL.
async fn connect(place: &SqlitePlace) -> Result<SqliteConnection, rusqlite::Error> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        match SqliteConnection::writer(place) {
            Err(error) if is_busy(&error) && Instant::now() < end => sleep(BUSY_PAUSE).await,
            connected => return connected,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Creates the file with mode 0600, because the database holds passwords.
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // SQLite creates its journal files with the same mode.
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

/// Connects to a server, and returns the database with the version of its tables.
async fn open_postgres(url: &str, schema: Schema, timeout: Duration) -> Result<(Backend, i64)> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl)?
        .disable_statement_logging();
    let pool = Arc::new(Pool::new(options, timeout));
    let version = migrate_postgres(&pool, schema).await?;
    Ok((Backend::Postgres(pool), version))
}

/// Migrates the tables, and returns their version. A table that others use for long is tried again, because its other users wait meanwhile.
async fn migrate_postgres(pool: &Arc<Pool>, schema: Schema) -> Result<i64> {
    let end = Instant::now() + MIGRATION_ATTEMPTS;
    let version = loop {
        let migrated =
            pool.migrate(move |connection| Box::pin(migrate::migrate(connection, schema)));
        match migrated.await {
            Err(error) if migrate::is_locked_out(&error) && Instant::now() < end => {
                sleep(MIGRATION_PAUSE).await;
            }
            migrated => break migrated?,
        }
    };
    let reached = schema.get(..version as usize).unwrap_or(schema);
    if migrate::has_concurrent_indexes(reached) {
        pool.index(move |connection| Box::pin(migrate::build_indexes(connection, reached))).await?;
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn writes_are_counted_by_their_outcome_and_reads_are_not() {
        let mut page = metrics::Metrics::new("test", "0");
        let database = Database::open("sqlite::memory:", &["CREATE TABLE t (n TEXT UNIQUE)"]).await;
        let database = database.unwrap().with_write_metrics(page.writes());
        let write = async || {
            let written = database.write(WriteKind::OneStatement, |connection| {
                Box::pin(async move {
                    Ok(connection.execute("INSERT INTO t VALUES ('a')", Vec::new()).await?)
                })
            });
            written.await
        };
        write().await.unwrap();
        write().await.unwrap_err();
        database.schema_version().await.unwrap();
        let text = page.text().unwrap();
        for line in [
            "bedplate_database_writes_total{outcome=\"committed\"} 1",
            "bedplate_database_writes_total{outcome=\"refused\"} 1",
            "bedplate_database_write_duration_seconds_count 2",
            "bedplate_database_writes_waiting 0",
        ] {
            assert!(text.lines().any(|it| it == line), "no line {line} in:\n{text}");
        }
    }

    #[test]
    fn a_write_is_named_after_its_function() {
        for (closure, name) in [
            ("a::store::Store::update_node::{{closure}}::{{closure}}", "update_node"),
            (
                "a::<impl a::Store>::insert_resource<b::Stored<b::Chassis>>::{{closure}}",
                "insert_resource",
            ),
            ("plain", "plain"),
        ] {
            assert_eq!(function_of(closure), name);
        }
    }

    /// `PRAGMA synchronous` of the connection that writes; 2 is FULL, 1 is NORMAL.
    #[tokio::test]
    async fn the_writer_of_a_file_waits_for_the_disk() {
        let folder = std::env::temp_dir().join(format!("database-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let url = format!("sqlite://{}/test.db", folder.display());
        let database = Database::open(&url, &[]).await.unwrap();
        let asked = database.write(WriteKind::AnyStatementCanFail, |connection| {
            Box::pin(async move {
                let row = connection.row("PRAGMA synchronous", Vec::new()).await?;
                let Some(row) = row else { return Ok(None) };
                Ok(Some(row.int(0)?))
            })
        });
        assert_eq!(asked.await.unwrap(), Some(2));
        drop(database);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
