//! The sweeps of power states.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::histogram;

/// Counts the sweeps over all BMCs, and the machines that they reach. Clones count the same sweeps.
#[derive(Clone, Debug)]
pub struct SweepMetrics {
    machines: Family<AnswerLabels, Counter>,
    durations: Histogram,
    health: Family<HealthLabels, Gauge>,
    /// The healths that the sweep in progress has found.
    found: Arc<Mutex<HashMap<&'static str, i64>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    answered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HealthLabels {
    health: &'static str,
}

impl Default for SweepMetrics {
    fn default() -> Self {
        SweepMetrics {
            machines: Family::default(),
            durations: histogram(),
            health: Family::default(),
            found: Arc::default(),
        }
    }
}

impl SweepMetrics {
    /// Begins a sweep. An earlier one that did not reach its end is forgotten.
    pub fn begin(&self) {
        self.found().clear();
    }

    /// Counts a machine whose BMC reported the power state, and this health of the machine.
    pub fn answered(&self, health: &'static str) {
        self.machines.get_or_create(&AnswerLabels { answered: true }).inc();
        *self.found().entry(health).or_default() += 1;
    }

    /// Counts a machine whose BMC did not report the power state.
    pub fn failed(&self) {
        self.machines.get_or_create(&AnswerLabels { answered: false }).inc();
    }

    /// Counts a sweep that reached its end, and shows the healths that it found.
    pub fn ended(&self, took: Duration) {
        self.durations.observe(took.as_secs_f64());
        self.health.clear();
        for (health, count) in self.found().drain() {
            self.health.get_or_create(&HealthLabels { health }).set(count);
        }
    }

    fn found(&self) -> MutexGuard<'_, HashMap<&'static str, i64>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
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
        registry.register(
            "bedplate_machine_health",
            "Machines by the health that their BMCs reported in the last sweep",
            self.health.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn the_healths_of_the_last_whole_sweep_are_shown() {
        let mut metrics = Metrics::new("test", "0");
        let sweeps = metrics.sweeps();
        for healths in [&["OK", "Critical"][..], &["OK", "OK"]] {
            sweeps.begin();
            for &health in healths {
                sweeps.answered(health);
            }
            sweeps.ended(Duration::from_secs(1));
        }
        sweeps.begin();
        sweeps.answered("Critical");
        sweeps.begin();
        let page = metrics.text().unwrap();
        let healths = page.lines().filter(|line| line.starts_with("bedplate_machine_health{"));
        assert_eq!(healths.collect::<Vec<_>>(), [r#"bedplate_machine_health{health="OK"} 2"#]);
    }
}
