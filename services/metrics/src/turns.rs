//! The turns of a conductor, and the queue before them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::{Durations, durations};

/// Counts turns and the resources that wait for one. Clones count the same turns.
#[derive(Clone, Debug)]
pub struct TurnMetrics {
    waiting: WaitingTurns,
    running: Family<KindLabels, Gauge>,
    waits: Durations<KindLabels>,
    durations: Durations<KindLabels>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

/// The resources that wait, by their kind: since when, the one that waits longest first.
#[derive(Clone, Debug, Default)]
struct WaitingTurns(Arc<Mutex<BTreeMap<&'static str, VecDeque<Instant>>>>);

impl Default for TurnMetrics {
    fn default() -> Self {
        TurnMetrics {
            waiting: WaitingTurns::default(),
            running: Family::default(),
            waits: durations(),
            durations: durations(),
        }
    }
}

impl TurnMetrics {
    /// Counts a resource that waits for its turn from now on.
    pub fn queued(&self, kind: &'static str) {
        self.waiting.lock().entry(kind).or_default().push_back(Instant::now());
    }

    /// Counts a turn that begins after `waited` in the queue: the turn of the resource that waited longest of its kind.
    pub fn begun(&self, kind: &'static str, waited: Duration) {
        let labels = KindLabels { kind };
        self.waiting.lock().entry(kind).or_default().pop_front();
        self.running.get_or_create(&labels).inc();
        self.waits.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// Counts a turn that ended.
    pub fn ended(&self, kind: &'static str, took: Duration) {
        let labels = KindLabels { kind };
        self.running.get_or_create(&labels).dec();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.waiting.clone()));
        registry.register("bedplate_turns_running", "Turns in progress", self.running.clone());
        registry.register_with_unit(
            "bedplate_turn_wait",
            "Time from the moment a resource is due to its turn",
            Unit::Seconds,
            self.waits.clone(),
        );
        registry.register_with_unit(
            "bedplate_turn_duration",
            "Duration of a turn",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}

impl WaitingTurns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, VecDeque<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for WaitingTurns {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let waiting = self.lock();
        if waiting.is_empty() {
            return Ok(());
        }
        let (name, help) =
            ("bedplate_turns_waiting", "Resources that are due and wait for a free worker.");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (&kind, since) in waiting.iter() {
            let count = i64::try_from(since.len()).unwrap_or(i64::MAX);
            metric.encode_family(&KindLabels { kind })?.encode_gauge(&count)?;
        }
        let (name, help) =
            ("bedplate_turns_oldest_wait", "Time that the resource waits that waits longest.");
        let unit = Unit::Seconds;
        let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for (&kind, since) in waiting.iter() {
            let seconds = since.front().map_or(0.0, |since| since.elapsed().as_secs_f64());
            metric.encode_family(&KindLabels { kind })?.encode_gauge(&seconds)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn the_resource_that_waits_longest_begins_first() {
        let mut metrics = Metrics::new("test", "0");
        let turns = metrics.turns();
        assert!(!metrics.text().unwrap().contains("bedplate_turns_waiting"));
        turns.queued("node");
        turns.queued("node");
        let since: Vec<Instant> = turns.waiting.lock()["node"].iter().copied().collect();
        turns.begun("node", Duration::ZERO);
        assert_eq!(turns.waiting.lock()["node"], [since[1]]);
        let shown = |line: &str| metrics.text().unwrap().lines().any(|it| it == line);
        assert!(shown("bedplate_turns_waiting{kind=\"node\"} 1"));
        assert!(!shown("bedplate_turns_oldest_wait_seconds{kind=\"node\"} 0.0"));
        turns.begun("node", Duration::ZERO);
        assert!(shown("bedplate_turns_waiting{kind=\"node\"} 0"));
        assert!(shown("bedplate_turns_oldest_wait_seconds{kind=\"node\"} 0.0"));
    }
}
