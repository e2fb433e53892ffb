//! The queue of spans, and the task that sends them in batches.

use std::sync::Arc;
use std::time::Duration;

use metrics::{SpanOutcome, TraceMetrics};
use prost::Message;
use spans::{EndedSpan, SpanSink, Tracer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::collector::{Collector, Delivery};
use crate::config::{SetupError, TracesConfig};
use crate::encode;
use crate::message::Resource;

/// The most spans that wait for the collector.
const QUEUE: usize = 2048;
/// The most spans of one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const GATHER_FOR: Duration = Duration::from_secs(2);
/// The pauses between two attempts: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long one batch is tried.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// How long a daemon that stops sends spans.
const LAST_FLUSH: Duration = Duration::from_secs(2);

/// The program whose spans are sent.
#[derive(Clone, Debug)]
pub struct TracedProgram {
    /// `service.name`.
    pub name: &'static str,
    pub version: &'static str,
    /// `service.instance.id`: different for each of several daemons of one site.
    pub instance: String,
}

/// Sends spans until the daemon stops.
pub struct Exporter {
    queue: mpsc::Receiver<EndedSpan>,
    collector: Collector,
    program: TracedProgram,
    metrics: TraceMetrics,
}

/// The task that sends spans.
pub struct RunningExporter {
    end: CancellationToken,
    task: JoinHandle<()>,
}

/// Puts spans into the queue.
struct Queue {
    spans: mpsc::Sender<EndedSpan>,
    metrics: TraceMetrics,
}

impl SpanSink for Queue {
    fn take(&self, span: EndedSpan) {
        if self.spans.try_send(span).is_err() {
            self.metrics.ended(SpanOutcome::Dropped, 1);
        }
    }
}

/// Makes the tracer of a program, and the exporter that sends its spans. Reads the files that the configuration names.
///
/// # Errors
///
/// A file cannot be read or used.
pub fn open(
    config: &TracesConfig,
    program: TracedProgram,
    metrics: TraceMetrics,
) -> Result<(Tracer, Exporter), SetupError> {
    let collector = Collector { client: config.client()?, endpoint: config.endpoint.clone() };
    let (spans, queue) = mpsc::channel(QUEUE);
    let sink = Queue { spans, metrics: metrics.clone() };
    let tracer = Tracer::new(Arc::new(sink), config.sample);
    Ok((tracer, Exporter { queue, collector, program, metrics }))
}

impl RunningExporter {
    /// Sends the spans that wait, for a moment, and ends the task. Call this after everything that makes spans has ended.
    pub async fn end(self) {
        self.end.cancel();
        if let Err(error) = self.task.await {
            warn!("the exporter of traces ended early: {error}");
        }
    }
}

impl Exporter {
    /// Starts the task that sends spans.
    pub fn start(self) -> RunningExporter {
        let end = CancellationToken::new();
        RunningExporter { end: end.clone(), task: tokio::spawn(self.run(end)) }
    }

    /// Sends spans until `stop` is cancelled, and then for a moment the spans that wait.
    async fn run(mut self, stop: CancellationToken) {
        let mut log = DeliveryLog::default();
        while !stop.is_cancelled() {
            let mut batch = Vec::new();
            self.gather(&mut batch, &stop).await;
            if !batch.is_empty() {
                self.deliver(batch, &stop, &mut log).await;
            }
        }
        let mut rest = Vec::new();
        while let Ok(span) = self.queue.try_recv() {
            rest.push(span);
        }
        if rest.is_empty() {
            return;
        }
        let count = rest.len() as u64;
        let sent = timeout(LAST_FLUSH, self.collector.send(self.encode(rest))).await;
        let outcome = match sent {
            Ok(Delivery::Taken { .. }) => SpanOutcome::Sent,
            Ok(Delivery::Later { .. } | Delivery::Refused { .. }) | Err(_) => SpanOutcome::Dropped,
        };
        self.metrics.ended(outcome, count);
    }

    /// Waits for a span, and then a moment for more.
    async fn gather(&mut self, batch: &mut Vec<EndedSpan>, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            count = self.queue.recv_many(batch, BATCH) => if count == 0 {
                // All tracers are gone, so no span will come.
                stop.cancelled().await;
                return;
            }
        }
        let due = Instant::now() + GATHER_FOR;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(due) => return,
                count = self.queue.recv_many(batch, room) => if count == 0 { return },
            }
        }
    }

    /// Sends a batch until the collector takes or refuses it, for a bounded time.
    async fn deliver(
        &self,
        batch: Vec<EndedSpan>,
        stop: &CancellationToken,
        log: &mut DeliveryLog,
    ) {
        let count = batch.len() as u64;
        let body = self.encode(batch);
        let give_up_at = Instant::now() + GIVE_UP_AFTER;
        let mut pause = FIRST_PAUSE;
        loop {
            let (after, why) = match self.collector.send(body.clone()).await {
                Delivery::Taken { rejected } => {
                    let rejected = rejected.min(count);
                    self.metrics.ended(SpanOutcome::Sent, count - rejected);
                    self.metrics.ended(SpanOutcome::Refused, rejected);
                    return log.taken();
                }
                Delivery::Refused { why } => {
                    self.metrics.ended(SpanOutcome::Refused, count);
                    return log.failed(&why);
                }
                Delivery::Later { after, why } => (after, why),
            };
            log.failed(&why);
            let wait = after.unwrap_or(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            if Instant::now() + wait > give_up_at {
                return self.metrics.ended(SpanOutcome::Dropped, count);
            }
            tokio::select! {
                () = stop.cancelled() => return self.metrics.ended(SpanOutcome::Dropped, count),
                () = sleep(wait) => {}
            }
        }
    }

    fn encode(&self, spans: Vec<EndedSpan>) -> Vec<u8> {
        let TracedProgram { name, version, instance } = &self.program;
        let attributes = vec![
            encode::attribute("service.name", *name),
            encode::attribute("service.namespace", "bedplate"),
            encode::attribute("service.version", *version),
            encode::attribute("service.instance.id", instance.as_str()),
        ];
        encode::request(&Resource { attributes }, version, spans).encode_to_vec()
    }
}

/// Logs changes only, because a collector that is away would fill the log.
#[derive(Default)]
struct DeliveryLog {
    is_failing: bool,
}

impl DeliveryLog {
    fn taken(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            info!("the collector of traces takes spans again");
        }
    }

    fn failed(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            warn!("the collector of traces takes no spans, and the service goes on without: {why}");
        }
    }
}

#[cfg(test)]
mod tests;
