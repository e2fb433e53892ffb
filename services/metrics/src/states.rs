//! The time that nodes spend in each provision state.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The upper bounds of the buckets, in seconds: from a check of the credentials to a machine that stays in use for a month.
const BUCKETS: [f64; 11] =
    [1.0, 10.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0, 604_800.0, 2_592_000.0];

/// Measures how long nodes were in the provision states that they left. Clones measure the same nodes.
#[derive(Clone, Debug)]
pub struct StateMetrics {
    durations: Family<StateLabels, Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    provision_state: &'static str,
    failed: bool,
}

impl Default for StateMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        StateMetrics { durations: Family::new_with_constructor(histogram) }
    }
}

impl StateMetrics {
    /// Counts a node that left a state because its work went on or ended well, after this time.
    pub fn left(&self, provision_state: &'static str, seconds: u64) {
        self.observe(StateLabels { provision_state, failed: false }, seconds);
    }

    /// Counts a node that left a state because its work failed, after this time.
    pub fn failed(&self, provision_state: &'static str, seconds: u64) {
        self.observe(StateLabels { provision_state, failed: true }, seconds);
    }

    fn observe(&self, labels: StateLabels, seconds: u64) {
        self.durations.get_or_create(&labels).observe(seconds as f64);
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "bedplate_node_state_duration",
            "Time that nodes were in a provision state, by whether their work failed in it",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::Metrics;

    #[test]
    fn a_state_that_ends_in_a_failure_is_measured_apart() {
        let mut metrics = Metrics::new("test", "0");
        let states = metrics.states();
        states.left("cleaning", 4);
        states.left("cleaning", 7200);
        states.failed("cleaning", 30);
        let page = metrics.text().unwrap();
        let series = "bedplate_node_state_duration_seconds";
        for line in [
            format!("{series}_count{{provision_state=\"cleaning\",failed=\"false\"}} 2"),
            format!("{series}_sum{{provision_state=\"cleaning\",failed=\"false\"}} 7204.0"),
            format!("{series}_count{{provision_state=\"cleaning\",failed=\"true\"}} 1"),
            format!(
                "{series}_bucket{{le=\"10.0\",provision_state=\"cleaning\",failed=\"false\"}} 1"
            ),
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
    }
}
