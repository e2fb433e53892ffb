//! The writes to the database.

use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::histogram;

/// The outcome of a write whose caller did not wait for the commit.
const ABANDONED: &str = "abandoned";

/// Counts writes, and measures the time until they are committed. Clones count the same writes.
#[derive(Clone, Debug)]
pub struct WriteMetrics {
    waiting: Gauge,
    writes: Family<OutcomeLabels, Counter>,
    durations: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// A write in progress. It is counted when this value is dropped.
#[derive(Debug)]
pub struct WriteTimer {
    metrics: WriteMetrics,
    outcome: &'static str,
    begun: Instant,
}

impl Default for WriteMetrics {
    fn default() -> Self {
        WriteMetrics {
            waiting: Gauge::default(),
            writes: Family::default(),
            durations: histogram(),
        }
    }
}

impl WriteMetrics {
    /// Starts to measure a write, which waits from now on.
    pub fn begin(&self) -> WriteTimer {
        self.waiting.inc();
        WriteTimer { metrics: self.clone(), outcome: ABANDONED, begun: Instant::now() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_database_writes_waiting",
            "Writes that are queued or in progress",
            self.waiting.clone(),
        );
        registry.register(
            "bedplate_database_writes",
            "Writes to the database, by outcome",
            self.writes.clone(),
        );
        registry.register_with_unit(
            "bedplate_database_write_duration",
            "Time from a write to its commit, with the time in the queue",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}

impl WriteTimer {
    /// Records the outcome of the write, and counts the write.
    pub fn ended(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for WriteTimer {
    fn drop(&mut self) {
        self.metrics.waiting.dec();
        let labels = OutcomeLabels { outcome: self.outcome };
        self.metrics.writes.get_or_create(&labels).inc();
        self.metrics.durations.observe(self.begun.elapsed().as_secs_f64());
    }
}
