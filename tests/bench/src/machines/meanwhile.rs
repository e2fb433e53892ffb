//! A reader and a writer of the API, which measure latencies while the service works.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::client::Call;
use crate::daemon::Server;
use crate::load::LoadResult;

/// The interval of reads.
const READ_EVERY: Duration = Duration::from_millis(20);
/// The interval of writes.
const WRITE_EVERY: Duration = Duration::from_millis(100);
/// One of this many reads is a list.
const LIST_EACH: u32 = 10;
const LIST: &str = "/v1/nodes?limit=50&fields=uuid,name,provision_state,power_state";

type Measured = Arc<Mutex<LoadResult>>;

/// Requests at fixed times, however long the answers take.
pub(crate) struct Meanwhile {
    begun: Instant,
    reads: Measured,
    writes: Measured,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Meanwhile {
    /// Begins to read any of `machines` nodes, and to write any of the `witnesses` after them.
    pub(crate) fn start(server: Server, machines: usize, witnesses: usize) -> Meanwhile {
        let (reads, writes) = (Measured::default(), Measured::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(repeat(server, READ_EVERY, move || read(machines), reads.clone()));
        let write = move || write(machines + rand::random_range(0..witnesses));
        tasks.spawn(repeat(server, WRITE_EVERY, write, writes.clone()));
        Meanwhile { begun: Instant::now(), reads, writes, tasks }
    }

    /// Ends, and returns the results of the reads and of the writes.
    pub(crate) fn end(mut self) -> anyhow::Result<[LoadResult; 2]> {
        // A task ends only if its connection breaks.
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        self.tasks.abort_all();
        let seconds = self.begun.elapsed().as_secs_f64();
        Ok([self.reads, self.writes].map(|measured| {
            let mut load = std::mem::take(&mut *lock(&measured));
            load.seconds = seconds;
            load.took.sort_by(f64::total_cmp);
            load
        }))
    }
}

/// Sends a request at each interval, one after the other. A late request counts from the time at which it was due.
async fn repeat(
    server: Server,
    every: Duration,
    call: impl Fn() -> Call,
    measured: Measured,
) -> anyhow::Result<()> {
    let mut client = server.client().await?;
    let mut due = interval(every);
    loop {
        let since = due.tick().await;
        let call = call();
        let (status, answer) = client.ask(&call).await?;
        let mut load = lock(&measured);
        load.took.push(since.elapsed().as_secs_f64() * 1000.0);
        match status {
            // The node was written by another at the same time. A client would try again.
            StatusCode::CONFLICT => load.retries += 1,
            status if status.is_success() => {}
            status => {
                load.errors += 1;
                let text = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
                let error = format!("{} {}: {status} {text}", call.method, call.path);
                load.first_error.get_or_insert(error);
            }
        }
    }
}

fn read(machines: usize) -> Call {
    match rand::random_range(0..LIST_EACH) {
        0 => Call::get(LIST),
        _ => Call::get(format!("/v1/nodes/machine-{}", rand::random_range(0..machines))),
    }
}

/// The request that changes one value of a node's `extra`.
fn write(node: usize) -> Call {
    let value = rand::random::<u32>();
    let patch = json!([{ "op": "add", "path": "/extra/bench", "value": value }]);
    Call::send(Method::PATCH, format!("/v1/nodes/machine-{node}"), patch)
}

fn lock(measured: &Measured) -> std::sync::MutexGuard<'_, LoadResult> {
    measured.lock().unwrap_or_else(PoisonError::into_inner)
}
