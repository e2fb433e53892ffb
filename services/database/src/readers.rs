//! Connections that only read a SQLite file; they see the last commit and never wait for the writer.
//!
//! `sqlx`'s own pool asks each connection whether it lives whenever it is given back, which for a file in the same
//! process costs as much as the query did.

use std::sync::{Mutex, PoisonError};

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::Semaphore;

use crate::writer::BoxFuture;
use crate::{Connection, StoreError};

/// At most so many queries run at a time.
const READERS: usize = 4;

/// Reading connections: opened when first needed, then kept.
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions) -> Readers {
        Readers { options, permits: Semaphore::new(READERS), idle: Mutex::default() }
    }

    /// Has `work` done by a connection of its own. One whose work is abandoned or fails is not used again.
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
        // A list of connections is whole whatever panicked while it was locked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
