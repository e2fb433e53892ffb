//! The single writer of a SQLite database. Jobs that are requested at the same time share one transaction.
//!
//! A job gets its result only after the commit. The writer is a thread, because a commit waits for the disk.

use std::io;
use std::sync::Arc;
use std::thread;

use futures::executor::block_on;
use tokio::sync::{mpsc, oneshot};

use crate::{BoxFuture, Connection, Preceding, Result, SqlError, StoreError, WriteKind};

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
    fn answer(self: Box<Self>, committed: Result<(), Arc<SqlError>>);
}

/// The whole transaction has failed.
struct TransactionFailed(Arc<SqlError>);

struct Task<F, T> {
    work: Option<F>,
    extent: WriteKind,
    preceding: Option<Arc<dyn Preceding>>,
    outcome: Option<Result<T>>,
    waiting: oneshot::Sender<Result<T>>,
}

impl Writer {
    /// Starts the writer's thread with `connection`.
    pub(crate) fn start(connection: Connection) -> io::Result<Writer> {
        let (jobs, queue) = mpsc::channel(BATCH);
        thread::Builder::new().name("writer".to_owned()).spawn(|| write(connection, queue))?;
        Ok(Writer { jobs })
    }

    /// Runs `preceding` and `work`, and returns after the commit.
    pub(crate) async fn run<T, F>(
        &self,
        extent: WriteKind,
        preceding: Option<Arc<dyn Preceding>>,
        work: F,
    ) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let (waiting, answer) = oneshot::channel();
        let task = Task { work: Some(work), extent, preceding, outcome: None, waiting };
        self.jobs.send(Box::new(task)).await.map_err(|_| StoreError::Closing)?;
        answer.await.map_err(|_| StoreError::Closing)?
    }
}

fn write(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.blocking_recv_many(&mut batch, BATCH) > 0 {
        // Callers that got their results together submit their next jobs now. Yielding lets all of these jobs join the next transaction.
        thread::yield_now();
        while batch.len() < BATCH
            && let Ok(job) = queue.try_recv()
        {
            batch.push(job);
        }
        // The jobs wait for nothing but SQLite, which answers on this thread.
        let committed = block_on(transaction(&mut connection, &mut batch))
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

impl From<SqlError> for TransactionFailed {
    fn from(error: SqlError) -> TransactionFailed {
        TransactionFailed(Arc::new(error))
    }
}

impl<T, F> Task<F, T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send,
    T: Send,
{
    async fn run_within(&mut self, connection: &mut Connection) -> Result<(), TransactionFailed> {
        // A job that nobody waits for any more is not begun: its caller may have died, and another program may run in its place.
        if self.waiting.is_closed() {
            return Ok(());
        }
        let Some(work) = self.work.take() else { return Ok(()) };
        if let Some(preceding) = &self.preceding
            && let Err(why) = preceding.run(connection).await
        {
            if let StoreError::Unavailable { source } = &why {
                return Err(TransactionFailed(source.clone()));
            }
            self.outcome = Some(Err(StoreError::Unrecorded { source: why.into() }));
            return Ok(());
        }
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
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send,
    T: Send,
{
    fn run<'c>(
        &'c mut self,
        connection: &'c mut Connection,
    ) -> BoxFuture<'c, Result<(), TransactionFailed>> {
        Box::pin(self.run_within(connection))
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<SqlError>>) {
        let answer = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::Closing),
            (Err(source), _) => Err(StoreError::Unavailable { source }),
        };
        if let Some(preceding) = &self.preceding
            && let Err(
                StoreError::Unrecorded { .. }
                | StoreError::Unavailable { .. }
                | StoreError::Closing,
            ) = &answer
        {
            preceding.undone();
        }
        // The caller no longer waits for the result if this fails.
        let _ = self.waiting.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use crate::WriteKind::OneStatement;
    use crate::scratch::Scratch;
    use crate::{Database, values};

    const SCHEMA: &[&str] = &["CREATE TABLE words (word TEXT NOT NULL)"];

    async fn add(database: Database, word: &'static str) {
        const ADD: &str = "INSERT INTO words (word) VALUES ($1)";
        let added = database.write(OneStatement, move |c| {
            Box::pin(async move { Ok(c.execute(ADD, values![word]).await?) })
        });
        assert_eq!(added.await.unwrap(), 1);
    }

    /// A test drops a program's runtime to let the program die. The writer's thread must not go on with what the program had requested.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_job_whose_caller_is_gone_is_not_begun() {
        let scratch = Scratch::sqlite();
        let database = Database::open(&scratch.url, SCHEMA).await.unwrap();
        // While another connection writes, the writer waits for it, and jobs queue up behind the first.
        let path = scratch.url.trim_start_matches("sqlite://");
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let first = tokio::spawn(add(database.clone(), "first"));
        let gone = tokio::spawn(add(database.clone(), "gone"));
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        other.execute_batch("COMMIT").unwrap();
        first.await.unwrap();
        add(database.clone(), "last").await;
        let mut words = other.prepare("SELECT word FROM words ORDER BY word").unwrap();
        let words: Vec<String> = words.query_map([], |row| row.get(0)).unwrap().flatten().collect();
        assert_eq!(words, ["first", "last"]);
    }
}
