//! The calls of BMCs.

use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::{Durations, durations};

/// The outcome of a call whose caller did not wait for the answer.
const ABANDONED: &str = "abandoned";

/// Counts the calls of BMCs, and measures their latency. Clones count the same calls.
#[derive(Clone, Debug)]
pub struct BmcMetrics {
    calls: Family<OutcomeLabels, Counter>,
    durations: Durations<BmcCall>,
}

/// The kind of a call, in words of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BmcCall {
    /// The driver of the node.
    pub driver: &'static str,
    /// The vendor of the machine.
    pub vendor: &'static str,
    /// The capability of the BMC, such as `power`.
    pub capability: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    driver: &'static str,
    vendor: &'static str,
    capability: &'static str,
    outcome: &'static str,
}

/// A call in progress. It is counted when this value is dropped.
#[derive(Debug)]
pub struct BmcCallTimer {
    metrics: BmcMetrics,
    call: BmcCall,
    outcome: &'static str,
    begun: Instant,
}

impl Default for BmcMetrics {
    fn default() -> Self {
        BmcMetrics { calls: Family::default(), durations: durations() }
    }
}

impl BmcMetrics {
    /// Starts to measure a call.
    pub fn begin(&self, call: BmcCall) -> BmcCallTimer {
        BmcCallTimer { metrics: self.clone(), call, outcome: ABANDONED, begun: Instant::now() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_bmc_calls",
            "Calls of BMCs, by driver, vendor, capability and outcome",
            self.calls.clone(),
        );
        registry.register_with_unit(
            "bedplate_bmc_call_duration",
            "Time until the answer of the BMC, without the time that the call waited for its turn",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}

impl BmcCallTimer {
    /// Records the outcome of the call, and counts the call.
    pub fn ended(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for BmcCallTimer {
    fn drop(&mut self) {
        let BmcCall { driver, vendor, capability } = self.call;
        let labels = OutcomeLabels { driver, vendor, capability, outcome: self.outcome };
        self.metrics.calls.get_or_create(&labels).inc();
        let durations = self.metrics.durations.get_or_create(&self.call);
        durations.observe(self.begun.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn a_call_whose_caller_left_is_counted_too() {
        let mut metrics = Metrics::new("test", "0");
        let calls = metrics.bmc_calls();
        let call = BmcCall { driver: "redfish", vendor: "dell", capability: "power" };
        calls.begin(call).ended("ok");
        drop(calls.begin(call));
        let page = metrics.text().unwrap();
        for line in [
            r#"bedplate_bmc_calls_total{driver="redfish",vendor="dell",capability="power",outcome="ok"} 1"#,
            r#"bedplate_bmc_calls_total{driver="redfish",vendor="dell",capability="power",outcome="abandoned"} 1"#,
            r#"bedplate_bmc_call_duration_seconds_count{driver="redfish",vendor="dell",capability="power"} 2"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
    }
}
