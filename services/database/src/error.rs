//! The errors of the stores.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ffi;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use uuid::Uuid;

/// The error of a statement, or of a row that it returned.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] sqlx::Error),
    /// The column is NULL, and its reader expects a value.
    #[error("column {column} is NULL")]
    Null { column: usize },
}

/// A result whose error is a [`StoreError`], unless it says otherwise.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why the store did not do as asked. Nothing was written, except perhaps by an [`StoreError::Unconfirmed`] write.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{field} {value:?} is already in use")]
    Duplicate {
        /// The name of the field in the API: `uuid`, `name`, `address`.
        field: &'static str,
        value: String,
    },
    /// Another writer changed or deleted the row after the caller had read it.
    #[error("the record was changed since it was read: read it again and retry")]
    Stale,
    #[error("the marker {0} was not found")]
    NoMarker(Uuid),
    #[error("{owner} {id} was not found")]
    NoOwner {
        /// The kind of the owner: `node`, `cluster`.
        owner: &'static str,
        id: Uuid,
    },
    /// The document would be larger than a caller may store.
    #[error(
        "{field}: the document would have {bytes} bytes; the limit is {most} (api.limits.document)"
    )]
    TooLarge {
        /// The name of the largest field in the API.
        field: &'static str,
        /// The size of all fields together, in bytes of JSON.
        bytes: usize,
        /// The largest allowed size, in bytes of JSON.
        most: usize,
    },
    #[error("{what}: the {holder} uses {used} of its limit of {most}")]
    LimitReached {
        /// The records that the limit counts: `allocations`.
        what: &'static str,
        /// The kind of the owner that has the limit: `project`, `node`.
        holder: &'static str,
        used: u64,
        /// The limit.
        most: u64,
    },
    /// The job that precedes the write failed, so the write was not begun ([`crate::Preceding`]).
    #[error("the job that precedes the change failed, so nothing was changed")]
    Unrecorded { source: Box<dyn std::error::Error + Send + Sync> },
    /// The row to delete is referred to by other rows.
    #[error("it is still in use by {by}")]
    InUse {
        /// The kind of the referring rows.
        by: &'static str,
    },
    /// A stored row cannot be read: this program did not write it.
    #[error("the stored row {id} of table {table} cannot be read")]
    Corrupt { table: &'static str, id: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// A newer program has changed the database so that this one cannot work on it. Nothing was changed.
    #[error(
        "the database needs version {program} or newer: it has schema version {found}, and this program, version {own}, knows {known}",
        own = crate::program::VERSION
    )]
    NewerSchema {
        /// The version of the tables in the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
        /// The oldest version of the program that may work on the database.
        program: String,
    },
    /// An older program works on the database that this one cannot work beside. Nothing was changed.
    #[error(
        "conductor {hostname} on this database runs version {version}, which cannot work beside version {own}: upgrade one version after the other, or stop that conductor",
        own = crate::program::VERSION
    )]
    OlderProgram {
        /// The host name of the conductor.
        hostname: String,
        version: String,
    },
    /// The URL is not valid. The URL may hold a password, so the message does not repeat it.
    #[error("the database URL is not valid: use sqlite:///PATH or postgres://USER@HOST/DATABASE")]
    BadUrl,
    #[error("cannot start a thread for the database")]
    NoThread(#[source] io::Error),
    #[error("cannot create the database file {}", path.display())]
    CannotCreate { path: PathBuf, source: io::Error },
    /// The SQLite file is damaged.
    #[error(
        "the database file {} is damaged ({found}): copy it, then restore the last backup, or recover the readable rows with `sqlite3 {} .recover`",
        path.display(),
        path.display()
    )]
    Damaged {
        path: PathBuf,
        /// The first damage that was found.
        found: String,
    },
    #[error("the database failed")]
    Unavailable { source: Arc<SqlError> },
    /// PostgreSQL did not say whether a change was committed: it is in the database now, or never will be, or will be in a moment.
    #[error("the database did not confirm the change")]
    Unconfirmed { source: Arc<SqlError> },
    #[error("the database is shutting down")]
    Closing,
}

impl<E: Into<SqlError>> From<E> for StoreError {
    fn from(error: E) -> Self {
        StoreError::Unavailable { source: Arc::new(error.into()) }
    }
}

impl SqlError {
    /// Whether the database has refused the statement, and not failed.
    pub fn is_refusal(&self) -> bool {
        match self {
            SqlError::Sqlite(error) => error.sqlite_error_code().is_some(),
            SqlError::Postgres(error) => error.as_database_error().is_some(),
            SqlError::Null { .. } => false,
        }
    }

    /// SQLite's result code without its extension; `None` for another error.
    pub(crate) fn sqlite_code(&self) -> Option<i32> {
        let SqlError::Sqlite(error) = self else { return None };
        error.sqlite_error().map(|error| error.extended_code & 0xff)
    }
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything: the database is away, overloaded or starting.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Unavailable { source } | StoreError::Unconfirmed { source } => {
                passes(source)
            }
            StoreError::Closing => true,
            StoreError::Duplicate { .. }
            | StoreError::Stale
            | StoreError::NoMarker(_)
            | StoreError::NoOwner { .. }
            | StoreError::TooLarge { .. }
            | StoreError::LimitReached { .. }
            | StoreError::InUse { .. }
            | StoreError::Unrecorded { .. }
            | StoreError::Corrupt { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::OlderProgram { .. }
            | StoreError::BadUrl
            | StoreError::NoThread(_)
            | StoreError::CannotCreate { .. }
            | StoreError::Damaged { .. } => false,
        }
    }

    /// The error for the unreadable row `id` of `table`.
    pub fn corrupt(
        table: &'static str,
        id: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        StoreError::Corrupt { table, id: id.to_owned(), source: source.into() }
    }
}

/// SQLSTATE classes of errors that pass by themselves (PostgreSQL 17, Appendix A): connection, rollback of a transaction, resources,
/// operator intervention, system.
const PASSING_CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];
/// Returns whether an error comes from the connection or the state of the database, and not from the statement.
fn passes(error: &SqlError) -> bool {
    let error = match error {
        SqlError::Postgres(error) => error,
        // Another connection has locked the database.
        SqlError::Sqlite(_) => {
            return matches!(error.sqlite_code(), Some(ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED));
        }
        SqlError::Null { .. } => return false,
    };
    let Some(refused) = error.as_database_error() else {
        return matches!(
            error,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)
        );
    };
    let code = refused.code().unwrap_or_default();
    let severity = refused.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity);
    matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic))
        || PASSING_CLASSES.iter().any(|class| code.starts_with(class))
}
