//! The single writer of a SQLite database. Jobs that are requested at the same time share one transaction.
//!
//! A job gets its result only after the commit.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::{BoxFuture, Connection, StoreError, WriteKind};

/// At most this many jobs share a transaction.
const BATCH: usize = 256;

/// Handle of the writer. After the last handle is dropped, the writer finishes its queue and ends.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// A write, together with the channel on which the caller waits for the result.
trait Job: Send {
    fn run<'c>(
        &'c mut self,
        connection: &'c mut Connection,
    ) -> BoxFuture<'c, Result<(), TransactionFailed>>;
    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>);
}

/// The whole transaction has failed.
struct TransactionFailed(Arc<sqlx::Error>);

struct Task<F, T> {
    work: Option<F>,
    extent: WriteKind,
    outcome: Option<Result<T, StoreError>>,
    waiting: oneshot::Sender<Result<T, StoreError>>,
}

impl Writer {
    /// Starts the writer task on `connection`.
    pub(crate) fn start(connection: Connection) -> Writer {
        let (jobs, queue) = mpsc::channel(BATCH);
        tokio::spawn(write(connection, queue));
        Writer { jobs }
    }

    /// Runs `work` and returns after the commit.
    pub(crate) async fn run<T, F>(&self, extent: WriteKind, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let (waiting, answer) = oneshot::channel();
        let task = Task { work: Some(work), extent, outcome: None, waiting };
        self.jobs.send(Box::new(task)).await.map_err(|_| StoreError::Closing)?;
        answer.await.map_err(|_| StoreError::Closing)?
    }
}

async fn write(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        // Callers that got their results together submit their next jobs now. Yielding lets all of these jobs join the next transaction.
        yield_now().await;
        while batch.len() < BATCH
            && let Ok(job) = queue.try_recv()
        {
            batch.push(job);
        }
        let committed = transaction(&mut connection, &mut batch)
            .await
            .map_err(|TransactionFailed(error)| error);
        for job in batch.drain(..) {
            job.answer(committed.clone());
        }
    }
}

/// Runs the jobs of `batch` in one transaction.
async fn transaction(
    connection: &mut Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<(), TransactionFailed> {
    // A deferred transaction that reads before it writes fails at once if another process has written in between.
    connection.execute("BEGIN IMMEDIATE", Vec::new()).await?;
    let done = run_all(connection, batch).await;
    if done.is_err() {
        // SQLite may have rolled back already; then this statement fails, and the error can be ignored.
        let _ = connection.execute("ROLLBACK", Vec::new()).await;
    }
    done
}

async fn run_all(
    connection: &mut Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<(), TransactionFailed> {
    for job in batch {
        job.run(connection).await?;
    }
    connection.execute("COMMIT", Vec::new()).await?;
    Ok(())
}

impl From<sqlx::Error> for TransactionFailed {
    fn from(error: sqlx::Error) -> TransactionFailed {
        TransactionFailed(Arc::new(error))
    }
}

impl<T, F> Task<F, T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>> + Send,
    T: Send,
{
    async fn run_within(&mut self, connection: &mut Connection) -> Result<(), TransactionFailed> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let undoes = self.extent == WriteKind::AnyStatementCanFail;
        if undoes {
            connection.execute("SAVEPOINT job", Vec::new()).await?;
        }
        let outcome = work(connection).await;
        if let Err(StoreError::Unavailable { source }) = &outcome {
            return Err(TransactionFailed(source.clone()));
        }
        if undoes && outcome.is_err() {
            connection.execute("ROLLBACK TO job", Vec::new()).await?;
        }
        if undoes {
            connection.execute("RELEASE job", Vec::new()).await?;
        }
        self.outcome = Some(outcome);
        Ok(())
    }
}

impl<T, F> Job for Task<F, T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>> + Send,
    T: Send,
{
    fn run<'c>(
        &'c mut self,
        connection: &'c mut Connection,
    ) -> BoxFuture<'c, Result<(), TransactionFailed>> {
        Box::pin(self.run_within(connection))
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>) {
        let answer = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::Closing),
            (Err(source), _) => Err(StoreError::Unavailable { source }),
        };
        // The caller no longer waits for the result if this fails.
        let _ = self.waiting.send(answer);
    }
}
