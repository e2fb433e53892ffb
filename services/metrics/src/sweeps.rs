//! The sweeps of power states.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::histogram;

/// Counts the sweeps over all BMCs, and the machines that they reach. Clones count the same sweeps.
#[derive(Clone, Debug)]
pub struct SweepMetrics {
    machines: Family<AnswerLabels, Counter>,
    durations: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    answered: bool,
}

impl Default for SweepMetrics {
    fn default() -> Self {
        SweepMetrics { machines: Family::default(), durations: histogram() }
    }
}

impl SweepMetrics {
    /// Counts a machine whose BMC reported the power state.
    pub fn answered(&self) {
        self.machines.get_or_create(&AnswerLabels { answered: true }).inc();
    }

    /// Counts a machine whose BMC did not report the power state.
    pub fn failed(&self) {
        self.machines.get_or_create(&AnswerLabels { answered: false }).inc();
    }

    /// Counts a sweep that reached its end.
    pub fn ended(&self, took: Duration) {
        self.durations.observe(took.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_sweep_machines",
            "Machines whose BMCs were asked for the power state, by whether they answered",
            self.machines.clone(),
        );
        registry.register_with_unit(
            "bedplate_sweep_duration",
            "Duration of a sweep over all idle machines",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}
