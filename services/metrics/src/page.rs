//! The page of metrics of one daemon.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::text;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::process::ProcessCollector;
use crate::{
    BmcMetrics, CapacityGauges, CloudMetrics, ClusterGauges, ConditionGauges, ConductorGauges,
    NodeGauges, RequestMetrics, SensorGauges, StateMetrics, SweepMetrics, TraceMetrics,
    TurnMetrics, WebhookMetrics, WriteMetrics,
};

/// The `Content-Type` of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of one daemon.
#[derive(Debug)]
pub struct Metrics {
    daemon: &'static str,
    registry: Registry,
}

/// Whether the last read of the database for a scrape succeeded.
#[derive(Clone, Debug, Default)]
pub struct DatabaseUp(Gauge);

impl DatabaseUp {
    /// Records whether the database answered the query for this page.
    pub fn set(&self, is_up: bool) {
        self.0.set(is_up.into());
    }
}

impl Metrics {
    /// Makes the page with the metrics that every daemon has: its build, its start, and the resources that it uses.
    pub fn new(daemon: &'static str, version: &'static str) -> Self {
        let mut registry = Registry::default();
        let build = Info::new([("daemon", daemon), ("version", version)]);
        registry.register("bedplate_build", "The program and its version", build);
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        registry.register_with_unit(
            "process_start_time",
            "When the program started, in seconds since 1970",
            Unit::Seconds,
            ConstGauge::new(begun.as_secs_f64()),
        );
        registry.register_collector(Box::new(ProcessCollector));
        Metrics { daemon, registry }
    }

    /// Adds whether the database answers.
    pub fn database_up(&mut self) -> DatabaseUp {
        let database_up = DatabaseUp::default();
        self.registry.register(
            "bedplate_database_up",
            "Whether the database answered the last query for this page: 1 or 0",
            database_up.0.clone(),
        );
        database_up
    }

    /// Adds the requests to the API.
    pub fn requests(&mut self) -> RequestMetrics {
        let requests = RequestMetrics::default();
        requests.register(&mut self.registry);
        requests
    }

    /// Adds the writes to the database.
    pub fn writes(&mut self) -> WriteMetrics {
        let writes = WriteMetrics::default();
        writes.register(&mut self.registry);
        writes
    }

    /// Adds the turns of the conductor.
    pub fn turns(&mut self) -> TurnMetrics {
        let turns = TurnMetrics::default();
        turns.register(&mut self.registry);
        turns
    }

    /// Adds the spans of traces.
    pub fn traces(&mut self) -> TraceMetrics {
        let traces = TraceMetrics::default();
        traces.register(&mut self.registry);
        traces
    }

    /// Adds the events that are sent to webhooks.
    pub fn webhooks(&mut self) -> WebhookMetrics {
        let webhooks = WebhookMetrics::default();
        webhooks.register(&mut self.registry);
        webhooks
    }

    /// Adds the calls of BMCs.
    pub fn bmc_calls(&mut self) -> BmcMetrics {
        let calls = BmcMetrics::default();
        calls.register(&mut self.registry);
        calls
    }

    /// Adds the calls of a cloud.
    pub fn cloud_calls(&mut self) -> CloudMetrics {
        let calls = CloudMetrics::default();
        calls.register(&mut self.registry);
        calls
    }

    /// Adds the sweeps of power states.
    pub fn sweeps(&mut self) -> SweepMetrics {
        let sweeps = SweepMetrics::default();
        sweeps.register(&mut self.registry);
        sweeps
    }

    /// Adds the time that nodes spend in each provision state.
    pub fn states(&mut self) -> StateMetrics {
        let states = StateMetrics::default();
        states.register(&mut self.registry);
        states
    }

    /// Adds the numbers of nodes.
    pub fn nodes(&mut self) -> NodeGauges {
        let nodes = NodeGauges::default();
        nodes.register(&mut self.registry);
        nodes
    }

    /// Adds the sensors of machines.
    pub fn sensors(&mut self) -> SensorGauges {
        let sensors = SensorGauges::default();
        sensors.register(&mut self.registry);
        sensors
    }

    /// Adds the capacity of the site and how much of it is in use.
    pub fn capacity(&mut self) -> CapacityGauges {
        let capacity = CapacityGauges::default();
        capacity.register(&mut self.registry);
        capacity
    }

    /// Adds the conductors that share the database.
    pub fn conductors(&mut self) -> ConductorGauges {
        let conductors = ConductorGauges::of(self.daemon);
        conductors.register(&mut self.registry);
        conductors
    }

    /// Adds the numbers of clusters.
    pub fn clusters(&mut self) -> ClusterGauges {
        let clusters = ClusterGauges::default();
        clusters.register(&mut self.registry);
        clusters
    }

    /// Adds the statuses and conditions of clusters.
    pub fn conditions(&mut self) -> ConditionGauges {
        let conditions = ConditionGauges::default();
        conditions.register(&mut self.registry);
        conditions
    }

    /// Encodes the page.
    ///
    /// # Errors
    ///
    /// A number does not fit the format.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_the_daemon_and_ends_as_openmetrics_requires() {
        let mut metrics = Metrics::new("baremetald", "1.2.3");
        metrics.database_up().set(true);
        let page = metrics.text().unwrap();
        for line in [
            "bedplate_build_info{daemon=\"baremetald\",version=\"1.2.3\"} 1",
            "# TYPE process_start_time_seconds gauge",
            "# UNIT process_start_time_seconds seconds",
            "bedplate_database_up 1",
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
        for family in [
            "# TYPE process_cpu_seconds counter",
            "# TYPE process_resident_memory_bytes gauge",
            "# TYPE process_open_fds gauge",
        ] {
            assert!(page.lines().any(|it| it == family), "no line {family} in:\n{page}");
        }
        assert!(page.ends_with("\n# EOF\n"), "{page}");
    }
}
