//! The conductors that share a database.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The conductors of one service, as the database listed them last. Clones are the same gauges.
#[derive(Clone, Debug)]
pub struct ConductorGauges {
    daemon: &'static str,
    conductors: Family<StateLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    daemon: &'static str,
    state: &'static str,
}

impl ConductorGauges {
    /// Makes the gauges of the conductors of this program.
    pub(crate) fn of(daemon: &'static str) -> Self {
        ConductorGauges { daemon, conductors: Family::default() }
    }

    /// Replaces the numbers of conductors in each state.
    pub fn replace(&self, counts: impl IntoIterator<Item = (&'static str, u64)>) {
        for (state, count) in counts {
            let labels = StateLabels { daemon: self.daemon, state };
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.conductors.get_or_create(&labels).set(count);
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_conductors",
            "Conductors that share the database, by their state",
            self.conductors.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::Metrics;

    #[test]
    fn conductors_are_counted_by_their_state() {
        let mut metrics = Metrics::new("test", "0");
        let conductors = metrics.conductors();
        conductors.replace([("working", 2), ("dead", 0)]);
        conductors.replace([("working", 1), ("dead", 1)]);
        let page = metrics.text().unwrap();
        for line in [
            r#"bedplate_conductors{daemon="test",state="working"} 1"#,
            r#"bedplate_conductors{daemon="test",state="dead"} 1"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
    }
}
