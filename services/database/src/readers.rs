//! Read-only connections to a SQLite file. Readers see the last commit and never wait for the writer.
//!
//! The pool of `sqlx` is not used here: it pings each connection when the connection is returned, and for a file in the same process the
//! ping costs as much as the query did.

use std::sync::{Mutex, PoisonError};

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::Semaphore;

use crate::{BoxFuture, Connection, StoreError};

/// The most queries that run at the same time.
const READERS: usize = 4;

/// A pool of read-only connections. A connection is opened when it is first needed, and then kept.
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions) -> Readers {
        Readers { options, permits: Semaphore::new(READERS), idle: Mutex::default() }
    }

    /// Runs `work` on a connection that no other work uses. The connection is dropped if the work fails with `Unavailable` or is cancelled.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
    {
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Closing)?;
        let idle = self.idle().pop();
        let mut connection = Connection::Sqlite(match idle {
            Some(connection) => connection,
            None => self.options.connect().await?,
        });
        let outcome = work(&mut connection).await;
        if let (Connection::Sqlite(connection), false) =
            (connection, matches!(outcome, Err(StoreError::Unavailable { .. })))
        {
            self.idle().push(connection);
        }
        outcome
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        // A panic while the lock is held leaves the list intact, so the poisoned lock can be used.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
