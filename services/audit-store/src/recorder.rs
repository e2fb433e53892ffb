//! The single writer of a trail. Rows that are requested at the same time share one transaction.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use audit::{
    Broken, Entry, Filter, Head, ListedRow, NextWrite, Refusal, RefusalCounter, Trail, TrailError,
};
use database::WriteKind::{AnyStatementCanFail, OnlyFirstStatementCanFail};
use database::{BoxFuture, Connection, Database, Preceding, StoreError, reading, writing};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tracing::error;

use crate::table;

/// At most this many rows share a transaction, and at most this many wait.
const BATCH: usize = 256;
/// A row that nobody waits for is written with the next row that somebody waits for, and at the latest after this time. A caller that sends
/// one request after another so needs two commits for each, not three.
const LATER: Duration = Duration::from_millis(50);
/// Refusals are counted this long before rows with the counts are written.
const REFUSALS_EVERY: Duration = Duration::from_secs(300);

/// Stores the trail of one service. Clones share the same writer.
#[derive(Clone)]
pub struct Recorder {
    database: Database,
    refusals: Arc<Mutex<RefusalCounter>>,
    jobs: mpsc::Sender<Job>,
    /// Whether writes carry the rows of their requests.
    joins: bool,
}

/// The row of a request, which precedes the request's first write.
struct RowOfRequest {
    entry: Entry,
    service: &'static str,
    next: NextWrite,
}

struct Job {
    wanted: Wanted,
    /// `None` if nobody waits for the result.
    waiting: Option<oneshot::Sender<Result<(), TrailError>>>,
}

enum Wanted {
    Row(Box<Entry>),
    /// The rows requested so far are written now.
    EarlierRows,
    /// So are the counts of refusals.
    EarlierRowsAndCounts,
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
        let joins = database.precede_writes(Box::new(move || row_of_task(service)));
        Recorder { database, refusals, jobs, joins }
    }

    /// Waits until every row requested so far is written, including the counts of refusals. Call this last, when the service stops.
    pub async fn flush(&self) {
        // A failure is already logged by the writer, and at this point no caller is left to be told.
        let _ = self.send(Wanted::EarlierRowsAndCounts).await;
    }

    /// Waits until every row requested so far is written, so that a reader finds the result of a request that was answered. A trail that
    /// cannot be extended can still be read.
    async fn write_earlier_rows(&self) {
        let _ = self.send(Wanted::EarlierRows).await;
    }

    async fn send(&self, wanted: Wanted) -> Result<(), TrailError> {
        let (waiting, answer) = oneshot::channel();
        let job = Job { wanted, waiting: Some(waiting) };
        self.jobs.send(job).await.map_err(|_| closing())?;
        answer.await.map_err(|_| closing())?
    }
}

#[async_trait]
impl Trail for Recorder {
    async fn record(&self, entry: Entry) -> Result<(), TrailError> {
        self.send(Wanted::Row(Box::new(entry))).await
    }

    fn joins_next_write(&self) -> bool {
        self.joins
    }

    fn record_later(&self, entry: Entry) {
        let job = Job { wanted: Wanted::Row(Box::new(entry)), waiting: None };
        if let Err(mpsc::error::TrySendError::Full(job)) = self.jobs.try_send(job) {
            let jobs = self.jobs.clone();
            tokio::spawn(async move { jobs.send(job).await.ok() });
        }
    }

    fn refused(&self, refusal: Refusal) {
        lock(&self.refusals).count(refusal, Timestamp::now());
    }

    async fn head(&self) -> Result<Head, TrailError> {
        self.write_earlier_rows().await;
        reading!(self.database, |c| table::head(c).await).map_err(to_trail_error)
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<ListedRow>, TrailError> {
        self.write_earlier_rows().await;
        let filter = filter.clone();
        let listed = reading!(self.database, |c| table::list(c, &filter).await);
        listed.map_err(to_trail_error)
    }
}

fn row_of_task(service: &'static str) -> Option<Arc<dyn Preceding>> {
    let next = NextWrite::of_task()?;
    let entry = next.take()?;
    Some(Arc::new(RowOfRequest { entry, service, next }))
}

impl Preceding for RowOfRequest {
    fn run<'c>(&'c self, connection: &'c mut Connection) -> BoxFuture<'c, database::Result<()>> {
        let rows = vec![self.entry.clone()];
        Box::pin(table::append(connection, self.service, rows, Timestamp::now()))
    }

    fn undone(&self) {
        self.next.hold(self.entry.clone());
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
        let mut until = tell;
        loop {
            let room = BATCH - batch.len();
            let is_over = timeout_at(until, queue.recv_many(&mut batch, room)).await == Ok(0);
            let is_due = is_over || batch.len() == BATCH || Instant::now() >= until;
            if !is_due && batch.iter().all(|job| job.waiting.is_none()) {
                until = until.min(Instant::now() + LATER);
                continue;
            }
            let (mut entries, asks) = wanted(&mut batch);
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
            until = tell;
        }
    }

    async fn write(&self, entries: Vec<Entry>) -> Result<(), TrailError> {
        if entries.is_empty() {
            return Ok(());
        }
        let (service, count) = (self.service, entries.len());
        let kind = if count == 1 { OnlyFirstStatementCanFail } else { AnyStatementCanFail };
        let written = writing!(self.database, kind, |c| {
            table::append(c, service, entries, Timestamp::now()).await
        });
        written.map_err(to_trail_error).inspect_err(|why| {
            error!("cannot write {count} rows of the audit trail: {}", chain(why));
        })
    }
}

/// Takes the rows out of the jobs, and returns whether one of the jobs asks for the counts of refusals.
fn wanted(jobs: &mut [Job]) -> (Vec<Entry>, bool) {
    let mut counts = false;
    let rows = jobs.iter_mut().filter_map(|job| {
        match mem::replace(&mut job.wanted, Wanted::EarlierRows) {
            Wanted::Row(entry) => Some(*entry),
            Wanted::EarlierRows => None,
            Wanted::EarlierRowsAndCounts => {
                counts = true;
                None
            }
        }
    });
    (rows.collect(), counts)
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
