//! Why the store did not do as asked.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

/// Why the store did not do as asked. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something else has that value already, and no two may.
    #[error("{field} {value:?} is taken")]
    Duplicate {
        /// The field, in the API's word: `uuid`, `name`, `address`.
        field: &'static str,
        /// The value both would have.
        value: String,
    },
    /// It was written by another, or deleted, since it was read.
    #[error("it was changed by another since it was read")]
    Stale,
    /// The page's marker is no longer there, or never was.
    #[error("there is no {0} to begin the page after")]
    NoMarker(Uuid),
    /// What this would belong to is not there.
    #[error("there is no {owner} {id}")]
    NoOwner {
        /// What kind of thing: `node`, `cluster`.
        owner: &'static str,
        /// Which one.
        id: Uuid,
    },
    /// It would be larger than what a caller may store.
    #[error(
        "{field}: the document has {bytes} bytes with it, more than {most} (api.limits.document)"
    )]
    TooLarge {
        /// The largest field, in the API's word.
        field: &'static str,
        /// How many bytes of JSON all fields would have.
        bytes: usize,
        /// How many they may have.
        most: usize,
    },
    /// There are as many of them already as their owner may have.
    #[error("{what}: the project has {used}, and may have {most}")]
    Full {
        /// What there would be too many of: `allocations`.
        what: &'static str,
        /// How many there are.
        used: u64,
        /// How many there may be.
        most: u64,
    },
    /// Others refer to what was to be deleted.
    #[error("it is in use by {by}")]
    InUse {
        /// By what.
        by: &'static str,
    },
    /// What is stored cannot be read back: it was not written by this program.
    #[error("what is stored of {table} {id} cannot be read")]
    Corrupt {
        /// Which table.
        table: &'static str,
        /// Which row.
        id: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A newer program has written the database.
    #[error(
        "the database has schema version {found} and this program knows up to {known}: start the newer program"
    )]
    NewerSchema {
        /// The database's version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The URL names no database. It may hold a password, so it is not repeated.
    #[error("the database's URL is neither sqlite:///PATH nor postgres://USER@HOST/DATABASE")]
    BadUrl,
    /// The database file cannot be made.
    #[error("cannot create the database file {}", path.display())]
    CannotCreate {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The database file is spoiled.
    #[error(
        "the database file {} is damaged ({found}): keep a copy of it, put the last backup in its place, or save what can be read by `sqlite3 {} .recover`",
        path.display(),
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// The first thing that is wrong with it.
        found: String,
    },
    /// The database failed, or cannot be reached.
    #[error("the database failed")]
    Unavailable {
        /// What it, or the way to it, said.
        source: Arc<sqlx::Error>,
    },
    /// The program is shutting down: writes are no longer taken.
    #[error("the database is being closed")]
    Closing,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        StoreError::Unavailable { source: Arc::new(error) }
    }
}

impl StoreError {
    /// What is wrong with the row `id` of `table`.
    pub fn corrupt(
        table: &'static str,
        id: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        StoreError::Corrupt { table, id: id.to_owned(), source: source.into() }
    }
}
