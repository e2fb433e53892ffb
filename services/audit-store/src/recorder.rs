//! The single writer of a trail. Rows that are requested at the same time share one transaction.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use audit::{Broken, Entry, Filter, Head, ListedRow, Refusal, RefusalCounter, Trail, TrailError};
use database::WriteKind::OnlyFirstStatementCanFail;
use database::{Database, StoreError, reading, writing};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tracing::error;

use crate::table;

/// At most this many rows share a transaction, and at most this many wait.
const BATCH: usize = 256;
/// Refusals are counted this long before rows with the counts are written.
const REFUSALS_EVERY: Duration = Duration::from_secs(300);

/// Stores the trail of one service. Clones share the same writer.
#[derive(Clone)]
pub struct Recorder {
    database: Database,
    refusals: Arc<Mutex<RefusalCounter>>,
    jobs: mpsc::Sender<Job>,
}

/// A row to write, or the request to write the counts of refusals.
struct Job {
    /// `None` asks for the counts of refusals to be written.
    entry: Option<Entry>,
    /// `None` if nobody waits for the result.
    waiting: Option<oneshot::Sender<Result<(), TrailError>>>,
}

impl Recorder {
    /// Starts the writer of the trail of `service`. The schema of `database` must include [`crate::SCHEMA`]. The writer is a task of the
    /// current tokio runtime, and ends when the last clone is dropped.
    pub fn new(database: Database, service: &'static str) -> Self {
        let (jobs, queue) = mpsc::channel(BATCH);
        let refusals = Arc::default();
        let writer =
            Writer { database: database.clone(), refusals: Arc::clone(&refusals), service };
        tokio::spawn(writer.run(queue));
        Recorder { database, refusals, jobs }
    }

    /// Waits until every row requested so far is written, including the counts of refusals. Call this last, when the service stops.
    pub async fn flush(&self) {
        // A failure is already logged by the writer, and at this point no caller is left to be told.
        let _ = self.send(None).await;
    }

    async fn send(&self, entry: Option<Entry>) -> Result<(), TrailError> {
        let (waiting, answer) = oneshot::channel();
        let job = Job { entry, waiting: Some(waiting) };
        self.jobs.send(job).await.map_err(|_| closing())?;
        answer.await.map_err(|_| closing())?
    }
}

#[async_trait]
impl Trail for Recorder {
    async fn record(&self, entry: Entry) -> Result<(), TrailError> {
        self.send(Some(entry)).await
    }

    fn record_later(&self, entry: Entry) {
        let job = Job { entry: Some(entry), waiting: None };
        if let Err(mpsc::error::TrySendError::Full(job)) = self.jobs.try_send(job) {
            let jobs = self.jobs.clone();
            tokio::spawn(async move { jobs.send(job).await.ok() });
        }
    }

    fn refused(&self, refusal: Refusal) {
        lock(&self.refusals).count(refusal, Timestamp::now());
    }

    async fn head(&self) -> Result<Head, TrailError> {
        reading!(self.database, |c| table::head(c).await).map_err(to_trail_error)
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<ListedRow>, TrailError> {
        let filter = filter.clone();
        let listed = reading!(self.database, |c| table::list(c, &filter).await);
        listed.map_err(to_trail_error)
    }
}

struct Writer {
    database: Database,
    refusals: Arc<Mutex<RefusalCounter>>,
    service: &'static str,
}

impl Writer {
    async fn run(self, mut queue: mpsc::Receiver<Job>) {
        let mut tell = Instant::now() + REFUSALS_EVERY;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let came = timeout_at(tell, queue.recv_many(&mut batch, BATCH)).await;
            let is_over = came == Ok(0);
            let asks = batch.iter().any(|job| job.entry.is_none());
            let mut entries: Vec<Entry> =
                batch.iter_mut().filter_map(|job| job.entry.take()).collect();
            if is_over || asks || Instant::now() >= tell {
                entries.extend(lock(&self.refusals).drain());
                tell = Instant::now() + REFUSALS_EVERY;
            }
            let written = self.write(entries).await;
            for waiting in batch.drain(..).filter_map(|job| job.waiting) {
                // The caller no longer waits for the result if this fails.
                let _ = waiting.send(written.clone());
            }
            if is_over {
                return;
            }
        }
    }

    async fn write(&self, entries: Vec<Entry>) -> Result<(), TrailError> {
        if entries.is_empty() {
            return Ok(());
        }
        let (service, count) = (self.service, entries.len());
        let written = writing!(self.database, OnlyFirstStatementCanFail, |c| {
            table::append(c, service, entries, Timestamp::now()).await
        });
        written.map_err(to_trail_error).inspect_err(|why| {
            error!("cannot write {count} rows of the audit trail: {}", chain(why));
        })
    }
}

fn lock(refusals: &Mutex<RefusalCounter>) -> std::sync::MutexGuard<'_, RefusalCounter> {
    // A panic while the lock is held leaves the counts intact, so the poisoned lock can be used.
    refusals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a trail that was tampered with from a database that failed.
fn to_trail_error(error: StoreError) -> TrailError {
    if let StoreError::Corrupt { source, .. } = &error
        && let Some(broken) = source.downcast_ref::<Broken>()
    {
        return TrailError::Broken(broken.clone());
    }
    TrailError::Unavailable(Arc::new(error))
}

fn closing() -> TrailError {
    TrailError::Unavailable(Arc::new(StoreError::Closing))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        chain = format!("{chain}: {cause}");
        source = cause.source();
    }
    chain
}
