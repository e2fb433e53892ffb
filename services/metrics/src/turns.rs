//! The turns of a conductor, and the queue before them.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::{Durations, durations};

/// Counts turns and the resources that wait for one. Clones count the same turns.
#[derive(Clone, Debug)]
pub struct TurnMetrics {
    waiting: Family<KindLabels, Gauge>,
    running: Family<KindLabels, Gauge>,
    waits: Durations<KindLabels>,
    durations: Durations<KindLabels>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

impl Default for TurnMetrics {
    fn default() -> Self {
        TurnMetrics {
            waiting: Family::default(),
            running: Family::default(),
            waits: durations(),
            durations: durations(),
        }
    }
}

impl TurnMetrics {
    /// Counts a resource that waits for its turn from now on.
    pub fn queued(&self, kind: &'static str) {
        self.waiting.get_or_create(&KindLabels { kind }).inc();
    }

    /// Counts a turn that begins after `waited` in the queue.
    pub fn begun(&self, kind: &'static str, waited: Duration) {
        let labels = KindLabels { kind };
        self.waiting.get_or_create(&labels).dec();
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
        registry.register(
            "bedplate_turns_waiting",
            "Resources that are due and wait for a free worker",
            self.waiting.clone(),
        );
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
