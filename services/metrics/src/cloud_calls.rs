//! The calls of OpenStack's services.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::{Durations, durations};

/// Counts the calls of a cloud, and measures their latency. Clones count the same calls.
#[derive(Clone, Debug)]
pub struct CloudMetrics {
    calls: Family<OutcomeLabels, Counter>,
    durations: Durations<ServiceLabels>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    service: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    service: &'static str,
}

impl Default for CloudMetrics {
    fn default() -> Self {
        CloudMetrics { calls: Family::default(), durations: durations() }
    }
}

impl CloudMetrics {
    /// Counts a call that ended.
    pub fn ended(&self, service: &'static str, outcome: &'static str, took: Duration) {
        self.calls.get_or_create(&OutcomeLabels { service, outcome }).inc();
        self.durations.get_or_create(&ServiceLabels { service }).observe(took.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_cloud_calls",
            "Calls of OpenStack, by service and outcome",
            self.calls.clone(),
        );
        registry.register_with_unit(
            "bedplate_cloud_call_duration",
            "Duration of a call with its retries, without the wait for a permit",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}
