//! A pool of connections to PostgreSQL in which every wait ends: for a free connection, for a new connection, and for the result of each
//! statement.
//!
//! The pool of `sqlx` is not used here: it pings each connection when the connection is returned, and that ping has no timeout. While the
//! server is frozen, or its host is gone, every returned connection would stay in use.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tracing::Instrument;

use crate::notifications::Notifications;
use crate::session::{PostgresConnection, is_refusal, late};
use crate::{BoxFuture, Connection, Result, SqlError, StoreError, WriteKind};

/// The most connections that are open at the same time.
const CONNECTIONS: usize = 16;
/// An older connection is replaced, because a session of the server grows with what it has done.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);
/// The server cancels a statement at the timeout, and this much later the client stops waiting for the server. The server has to be first:
/// only then is it known that the statement wrote nothing.
const GRACE: Duration = Duration::from_secs(1);
/// The time that each statement of a migration may take: it may create an index on a large table.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Set explicitly, in case the server defaults to another isolation level: a transaction that waited for a lock must see what was committed
/// meanwhile.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// The connections to one server.
pub(crate) struct Pool {
    options: PgConnectOptions,
    timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<PostgresConnection>>,
}

/// A piece of work on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write(WriteKind),
    Migration,
    /// Statements outside of a transaction that may take as long as a migration.
    Indexing,
}

impl Pool {
    /// A pool without connections, in which no wait is longer than `timeout`.
    pub(crate) fn new(options: PgConnectOptions, timeout: Duration) -> Pool {
        Pool { options, timeout, permits: Semaphore::new(CONNECTIONS), idle: Mutex::default() }
    }

    /// Runs `work`, which only reads.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        in_own_task(Box::pin(self.clone().run(Kind::Read, work))).await
    }

    /// Runs `work`, which writes, and returns after the commit.
    pub(crate) async fn write<T, F>(self: &Arc<Self>, extent: WriteKind, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        in_own_task(Box::pin(self.clone().run(Kind::Write(extent), work))).await
    }

    /// Runs `work`, which migrates the tables, in one transaction.
    pub(crate) async fn migrate<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        in_own_task(Box::pin(self.clone().run(Kind::Migration, work))).await
    }

    /// Runs `work`, which builds indexes, outside of a transaction.
    pub(crate) async fn index<F>(self: &Arc<Self>, work: F) -> Result<()>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<()>> + Send + 'static,
    {
        in_own_task(Box::pin(self.clone().run(Kind::Indexing, work))).await
    }

    /// Opens a connection of its own, which receives the notifications of a channel.
    pub(crate) async fn notifications(&self, channel: &str) -> Result<Notifications> {
        Notifications::open(self.options.clone(), self.timeout, channel).await
    }

    async fn run<T, F>(self: Arc<Self>, kind: Kind, work: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let (_permit, connection) = Box::pin(self.acquire()).await?;
        let mut connection = Connection::Postgres(connection);
        let done = match kind {
            Kind::Read => work(&mut connection).await,
            // The statement commits by itself.
            Kind::Write(WriteKind::OneStatement) => match work(&mut connection).await {
                Err(StoreError::Unavailable { source }) => Err(lost_commit(source)),
                done => done,
            },
            Kind::Write(WriteKind::OnlyFirstStatementCanFail | WriteKind::AnyStatementCanFail) => {
                transaction(&mut connection, None, work).await
            }
            Kind::Migration => {
                if let Connection::Postgres(connection) = &mut connection {
                    connection.timeout = MIGRATION_TIMEOUT;
                }
                let limit = format!("SET LOCAL statement_timeout = {}", millis(MIGRATION_TIMEOUT));
                transaction(&mut connection, Some(limit), work).await
            }
            Kind::Indexing => return index(connection, work).await,
        };
        if let Connection::Postgres(connection) = connection {
            self.release(connection);
        }
        done
    }

    /// Returns a connection that answered a moment ago.
    async fn acquire(&self) -> Result<(SemaphorePermit<'_>, PostgresConnection)> {
        let acquire = async {
            let permit = self.permits.acquire().await.map_err(|_| StoreError::Closing)?;
            while let Some(mut idle) = self.take_idle() {
                if idle.connection.ping().await.is_ok() {
                    return Ok((permit, idle));
                }
                // The other connections went to the same server.
                self.idle().clear();
            }
            Ok((permit, self.open().await?))
        };
        timeout(self.timeout, acquire).await.unwrap_or_else(|_| {
            self.idle().clear();
            Err(late("give a connection", self.timeout).into())
        })
    }

    fn take_idle(&self) -> Option<PostgresConnection> {
        let mut idle = self.idle();
        idle.retain(|connection| connection.opened_at.elapsed() < MAX_AGE);
        idle.pop()
    }

    async fn open(&self) -> Result<PostgresConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let limit = millis(self.timeout);
        // Not as options of the connection: a pooler between here and the server refuses options that it does not know.
        let limits = format!(
            "SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}"
        );
        sqlx::raw_sql(AssertSqlSafe(limits)).execute(&mut connection).await?;
        Ok(PostgresConnection {
            connection,
            opened_at: Instant::now(),
            timeout: self.timeout + GRACE,
            is_broken: false,
        })
    }

    fn release(&self, mut connection: PostgresConnection) {
        let mut idle = self.idle();
        if connection.is_broken {
            idle.clear();
        } else {
            connection.timeout = self.timeout + GRACE;
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PostgresConnection>> {
        // A panic while the lock is held leaves the list intact, so the poisoned lock can be used.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs work in a task of its own, until the work ends.
///
/// A caller that is cancelled therefore leaves no connection in the middle of a statement. And the driver does not run on the stack of its
/// caller, and its large future is not a part of the caller's future: in a debug build both together need more than the 2 MiB of a thread of
/// tokio.
async fn in_own_task<T: Send + 'static>(work: BoxFuture<'static, Result<T>>) -> Result<T> {
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(StoreError::Closing),
        },
    }
}

/// Runs `work` between BEGIN and COMMIT; `limit` is a statement that comes before the work.
async fn transaction<T, F>(connection: &mut Connection, limit: Option<String>, work: F) -> Result<T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
{
    connection.script(BEGIN.to_owned()).await?;
    if let Some(limit) = limit {
        connection.script(limit).await?;
    }
    match work(connection).await {
        Ok(done) => match connection.script("COMMIT".to_owned()).await {
            Ok(()) => Ok(done),
            Err(error) => Err(lost_commit(Arc::new(error))),
        },
        Err(error) => {
            if let Connection::Postgres(open) = connection
                && !open.is_broken
            {
                // A connection that cannot roll back is broken then, and is closed: the server rolls back.
                let _ = connection.script("ROLLBACK".to_owned()).await;
            }
            Err(error)
        }
    }
}

/// Runs `work` with the timeout of a migration for each statement, and closes the connection.
async fn index<T, F>(mut connection: Connection, work: F) -> Result<T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
{
    if let Connection::Postgres(connection) = &mut connection {
        connection.timeout = MIGRATION_TIMEOUT;
    }
    connection.script(format!("SET statement_timeout = {}", millis(MIGRATION_TIMEOUT))).await?;
    work(&mut connection).await
}

/// Returns the error of a commit. Only a refusal proves that nothing was written.
fn lost_commit(source: Arc<SqlError>) -> StoreError {
    if matches!(&*source, SqlError::Postgres(error) if is_refusal(error)) {
        StoreError::Unavailable { source }
    } else {
        StoreError::Unconfirmed { source }
    }
}

fn millis(limit: Duration) -> u128 {
    limit.as_millis().max(1)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;
    use crate::scratch::Scratch;
    use crate::values;

    /// More than the pool has connections.
    const CALLERS: usize = 3 * CONNECTIONS;
    const TIMEOUT: Duration = Duration::from_millis(500);

    fn pool(url: &str) -> Arc<Pool> {
        Arc::new(Pool::new(PgConnectOptions::from_str(url).unwrap(), TIMEOUT))
    }

    async fn count(pool: &Arc<Pool>, sql: &'static str) -> Result<i64> {
        pool.read(move |c| {
            Box::pin(async move {
                let row = c.row(sql, values![]).await?;
                Ok(row.map_or(Ok(0), |row| row.int(0))?)
            })
        })
        .await
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_given_up() {
        // The kernel takes the connections, as it does for a server that is frozen.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = pool(&format!("postgres://u@{}/db", silent.local_addr().unwrap()));
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        for _ in 0..CALLERS {
            let pool = pool.clone();
            callers.spawn(async move { count(&pool, "SELECT 1").await.unwrap_err() });
        }
        while let Some(error) = callers.join_next().await {
            let error = error.unwrap();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
            assert!(error.is_transient(), "{error:?}");
        }
        assert!(begun.elapsed() < 10 * TIMEOUT, "{:?}", begun.elapsed());
        assert_eq!(pool.permits.available_permits(), CONNECTIONS);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_at_once() {
        let error = count(&pool("postgres://u@127.0.0.1:1/db"), "SELECT 1").await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }

    #[tokio::test]
    async fn a_statement_that_takes_too_long_is_cancelled_and_costs_no_connection() {
        let Some(scratch) = Scratch::postgres().await else { return };
        let pool = pool(&scratch.url);
        let error = count(&pool, "SELECT count(*) FROM pg_sleep(60)").await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        // The server cancelled it.
        assert_eq!((pool.idle().len(), pool.permits.available_permits()), (1, CONNECTIONS));
        assert_eq!(count(&pool, "SELECT CAST(7 AS BIGINT)").await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_session_that_the_server_ended_is_replaced() {
        let Some(scratch) = Scratch::postgres().await else { return };
        let pool = pool(&scratch.url);
        let own = count(&pool, "SELECT CAST(pg_backend_pid() AS BIGINT)").await.unwrap();
        let end = "SELECT count(*) FROM pg_terminate_backend(pg_backend_pid())";
        let error = count(&pool, end).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        assert_ne!(count(&pool, "SELECT CAST(pg_backend_pid() AS BIGINT)").await.unwrap(), own);
    }
}
