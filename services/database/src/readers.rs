//! Read-only connections to a SQLite file. Readers see the last commit and never wait for the writer.
//!
//! A query runs on the thread that asks for it, so there are at most as many connections as threads.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::{BoxFuture, Connection, Result, SqliteConnection, StoreError};

/// A pool of read-only connections. A connection is opened when it is first needed, and then kept.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Readers {
        Readers { path, idle: Mutex::default() }
    }

    /// Runs `work` on a connection that no other work uses. The connection is dropped if the work fails with `Unavailable` or is cancelled.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let idle = self.idle().pop();
        let mut connection = Connection::Sqlite(match idle {
            Some(connection) => connection,
            None => SqliteConnection::reader(&self.path)?,
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
