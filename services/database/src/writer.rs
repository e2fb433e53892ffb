//! The one writer of a SQLite database: what is asked for at the same time is committed together.
//!
//! A job is answered only after the commit that made it last.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::{Connection, StoreError};

/// A future of unnamed type, for jobs of many kinds in one queue.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// At most so many jobs share a transaction.
const BATCH: usize = 256;

/// Whether a job can be refused halfway, so that its beginning has to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One statement writes: it happens or not.
    OneStatement,
    /// Several statements write, and none but the first can be refused.
    FirstDecides,
    /// Several statements write, and any can be refused.
    AnyDecides,
}

/// The way to the writer. When the last is dropped, the writer finishes its work and ends.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// Something to write, and someone who waits for it.
trait Job: Send {
    fn run<'c>(&'c mut self, connection: &'c mut Connection) -> BoxFuture<'c, Result<(), Broken>>;
    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>);
}

/// The transaction cannot go on.
struct Broken(Arc<sqlx::Error>);

struct Task<F, T> {
    work: Option<F>,
    extent: Extent,
    outcome: Option<Result<T, StoreError>>,
    waiting: oneshot::Sender<Result<T, StoreError>>,
}

impl Writer {
    /// Starts the writer on `connection`.
    pub(crate) fn start(connection: Connection) -> Writer {
        let (jobs, queue) = mpsc::channel(BATCH);
        tokio::spawn(write(connection, queue));
        Writer { jobs }
    }

    /// Has `work` done, and returns once it is committed.
    pub(crate) async fn run<T, F>(&self, extent: Extent, work: F) -> Result<T, StoreError>
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
        // Those who were answered together ask for what they do next, one after the other: the next transaction is all theirs.
        yield_now().await;
        while batch.len() < BATCH
            && let Ok(job) = queue.try_recv()
        {
            batch.push(job);
        }
        let committed =
            transaction(&mut connection, &mut batch).await.map_err(|Broken(error)| error);
        for job in batch.drain(..) {
            job.answer(committed.clone());
        }
    }
}

/// Runs the jobs of `batch` in one transaction.
async fn transaction(
    connection: &mut Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<(), Broken> {
    // A deferred transaction that reads before it writes fails at once where another process has written between.
    connection.execute("BEGIN IMMEDIATE", Vec::new()).await?;
    let done = run_all(connection, batch).await;
    if done.is_err() {
        // The database may have rolled back by itself: then there is nothing to roll back, and that is well.
        let _ = connection.execute("ROLLBACK", Vec::new()).await;
    }
    done
}

async fn run_all(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Broken> {
    for job in batch {
        job.run(connection).await?;
    }
    connection.execute("COMMIT", Vec::new()).await?;
    Ok(())
}

impl From<sqlx::Error> for Broken {
    fn from(error: sqlx::Error) -> Broken {
        Broken(Arc::new(error))
    }
}

impl<T, F> Task<F, T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>> + Send,
    T: Send,
{
    async fn run_within(&mut self, connection: &mut Connection) -> Result<(), Broken> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let undoes = self.extent == Extent::AnyDecides;
        if undoes {
            connection.execute("SAVEPOINT job", Vec::new()).await?;
        }
        let outcome = work(connection).await;
        if let Err(StoreError::Unavailable { source }) = &outcome {
            return Err(Broken(source.clone()));
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
    fn run<'c>(&'c mut self, connection: &'c mut Connection) -> BoxFuture<'c, Result<(), Broken>> {
        Box::pin(self.run_within(connection))
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>) {
        let answer = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::Closing),
            (Err(source), _) => Err(StoreError::Unavailable { source }),
        };
        // Whoever no longer waits does not want to know.
        let _ = self.waiting.send(answer);
    }
}
