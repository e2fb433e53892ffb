//! The metrics of baremetald, and the counts that a scrape reads.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use baremetal_conductor::ConductorMetrics;
use baremetal_store::{Capacity, Store, StoreError};
use daemon::ScrapeCounts;
use jiff::Timestamp;
use metrics::{
    CapacityGauges, ClassCount, CloudMetrics, ConductorGauges, Metrics, NodeCount, NodeGauges,
    RequestMetrics, StateMetrics, WebhookMetrics, WriteMetrics,
};
use openstack::CallObserver;
use otlp::{Exporter, TracedProgram, TracesConfig};
use replicas::LivingConductors;
use spans::Tracer;

use crate::Config;

/// The age of the capacity at which a scrape counts it again. The query reads the whole table of nodes.
const CAPACITY_EVERY: Duration = Duration::from_secs(60);

const BAD_TRACES: &str = "cannot send traces as configured (traces)";

/// The page of metrics, and the handles with which the parts of the service count.
pub(crate) struct ServiceMetrics {
    pub(crate) page: Metrics,
    pub(crate) requests: RequestMetrics,
    pub(crate) writes: WriteMetrics,
    pub(crate) states: StateMetrics,
    pub(crate) cloud_calls: CloudMetrics,
    pub(crate) webhooks: WebhookMetrics,
    pub(crate) tracer: Tracer,
    /// Sends the spans; `None` without a collector.
    pub(crate) exporter: Option<Exporter>,
    pub(crate) conductor: ConductorMetrics,
    nodes: NodeGauges,
    conductors: ConductorGauges,
    capacity: CapacityGauges,
}

impl ServiceMetrics {
    /// Makes the page and the handles. Reads the files that the section `[traces]` names.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let mut page = Metrics::new("baremetald", env!("CARGO_PKG_VERSION"));
        let traces = page.traces();
        let program = TracedProgram {
            name: "baremetald",
            version: env!("CARGO_PKG_VERSION"),
            instance: config.hostname(),
        };
        let traced = config.traces.as_ref().map(|it| otlp::open(it, program, traces)).transpose();
        let (tracer, exporter) = traced.context(BAD_TRACES)?.unzip();
        Ok(ServiceMetrics {
            requests: page.requests(),
            writes: page.writes(),
            states: page.states(),
            cloud_calls: page.cloud_calls(),
            webhooks: page.webhooks(),
            tracer: tracer.unwrap_or_default(),
            exporter,
            conductor: ConductorMetrics {
                turns: page.turns(),
                bmc_calls: page.bmc_calls(),
                sweeps: page.sweeps(),
                sensors: page.sensors(),
            },
            nodes: page.nodes(),
            conductors: page.conductors(),
            capacity: page.capacity(),
            page,
        })
    }

    /// Returns the observer of the calls of a cloud.
    pub(crate) fn cloud_observer(&self) -> CallObserver {
        let calls = self.cloud_calls.clone();
        CallObserver::new(move |service, outcome, took| {
            calls.ended(service.as_str(), outcome, took);
        })
    }

    /// Returns the page, and the counts that are read from `store` before a scrape.
    pub(crate) fn serving(self, store: Store) -> (Metrics, RecordCounts) {
        let ServiceMetrics { page, nodes, conductors, capacity, webhooks, .. } = self;
        let capacity_read_at = Mutex::new(None);
        (page, RecordCounts { store, nodes, conductors, capacity, webhooks, capacity_read_at })
    }
}

/// Checks the files that the section `[traces]` names.
pub(crate) fn check_traces(config: &Config) -> anyhow::Result<()> {
    let checked = config.traces.as_ref().map(TracesConfig::check).transpose();
    checked.map(drop).context(BAD_TRACES)
}

/// Counts the records in the database.
pub(crate) struct RecordCounts {
    store: Store,
    nodes: NodeGauges,
    conductors: ConductorGauges,
    capacity: CapacityGauges,
    webhooks: WebhookMetrics,
    capacity_read_at: Mutex<Option<Instant>>,
}

impl ScrapeCounts for RecordCounts {
    type Error = StoreError;

    async fn refresh(&self) -> Result<(), StoreError> {
        let (counts, faults) = self.store.tally_conditions().await?;
        self.nodes.replace(counts.into_iter().map(|it| NodeCount {
            provision_state: it.state.as_str(),
            is_busy: it.is_busy,
            is_failed: it.is_failed,
            count: it.count,
        }));
        self.nodes.replace_faults(faults.into_iter().map(|(fault, count)| (fault.as_str(), count)));
        let now = Timestamp::now();
        let conductors = self.store.conductors();
        let tally = LivingConductors::tally(&conductors.list(now).await?, &conductors);
        self.conductors.replace(tally.map(|(state, count)| (state.as_str(), count)));
        let webhooks = self.store.webhooks().collect();
        for it in self.store.webhook_outbox().backlogs_of(webhooks).await? {
            self.webhooks.set_backlog(&it.webhook, it.waiting, it.age(now), it.dead);
        }
        if self.is_capacity_old() {
            self.show(self.store.capacity(now).await?);
            *self.capacity_read_at.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Instant::now());
        }
        Ok(())
    }
}

impl RecordCounts {
    fn is_capacity_old(&self) -> bool {
        let read_at = self.capacity_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        read_at.is_none_or(|at| at.elapsed() >= CAPACITY_EVERY)
    }

    fn show(&self, counted: Capacity) {
        let Capacity { classes, allocations, lent_nodes, dhcp_leases } = counted;
        let classes = classes.into_iter().map(|it| ClassCount {
            class: it.class,
            free: it.free,
            used: it.used,
            withheld: it.withheld,
        });
        self.capacity.replace_classes(classes.collect());
        let allocations = allocations.into_iter().map(|(state, count)| (state.as_str(), count));
        self.capacity.replace_allocations(allocations);
        self.capacity.set_leases(lent_nodes, dhcp_leases);
    }
}
