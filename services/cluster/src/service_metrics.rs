//! The metrics of clusterd, and the counts that a scrape reads.

use anyhow::Context;
use cluster_conductor::ConductorMetrics;
use cluster_store::{Scope, Store, StoreError};
use daemon::ScrapeCounts;
use jiff::Timestamp;
use metrics::{
    CloudMetrics, ClusterGauges, ConductorGauges, Metrics, RequestMetrics, WebhookMetrics,
    WriteMetrics,
};
use openstack::CallObserver;
use otlp::{Exporter, TracedProgram, TracesConfig};
use replicas::LivingConductors;
use spans::Tracer;

use crate::Config;

const BAD_TRACES: &str = "cannot send traces as configured (traces)";

/// The page of metrics, and the handles with which the parts of the service count.
pub(crate) struct ServiceMetrics {
    pub(crate) page: Metrics,
    pub(crate) requests: RequestMetrics,
    pub(crate) writes: WriteMetrics,
    pub(crate) cloud_calls: CloudMetrics,
    pub(crate) webhooks: WebhookMetrics,
    pub(crate) tracer: Tracer,
    /// Sends the spans; `None` without a collector.
    pub(crate) exporter: Option<Exporter>,
    pub(crate) conductor: ConductorMetrics,
    clusters: ClusterGauges,
    conductors: ConductorGauges,
}

impl ServiceMetrics {
    /// Makes the page and the handles. Reads the files that the section `[traces]` names.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let mut page = Metrics::new("clusterd", env!("CARGO_PKG_VERSION"));
        let traces = page.traces();
        let program = TracedProgram {
            name: "clusterd",
            version: env!("CARGO_PKG_VERSION"),
            instance: config.hostname(),
        };
        let traced = config.traces.as_ref().map(|it| otlp::open(it, program, traces)).transpose();
        let (tracer, exporter) = traced.context(BAD_TRACES)?.unzip();
        Ok(ServiceMetrics {
            requests: page.requests(),
            writes: page.writes(),
            cloud_calls: page.cloud_calls(),
            webhooks: page.webhooks(),
            tracer: tracer.unwrap_or_default(),
            exporter,
            conductor: ConductorMetrics { turns: page.turns(), clusters: page.conditions() },
            clusters: page.clusters(),
            conductors: page.conductors(),
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
        let ServiceMetrics { page, clusters, conductors, webhooks, .. } = self;
        (page, RecordCounts { store, clusters, conductors, webhooks })
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
    clusters: ClusterGauges,
    conductors: ConductorGauges,
    webhooks: WebhookMetrics,
}

impl ScrapeCounts for RecordCounts {
    type Error = StoreError;

    async fn refresh(&self) -> Result<(), StoreError> {
        let (clusters, members) = self.store.count_clusters(&Scope::All).await?;
        self.clusters.set(clusters, members, self.store.count_vms().await?);
        let now = Timestamp::now();
        let conductors = self.store.conductors();
        let tally = LivingConductors::tally(&conductors.list(now).await?, &conductors);
        self.conductors.replace(tally.map(|(state, count)| (state.as_str(), count)));
        let webhooks = self.store.webhooks().collect();
        for it in self.store.webhook_outbox().backlogs_of(webhooks).await? {
            self.webhooks.set_backlog(&it.webhook, it.waiting, it.age(now), it.dead);
        }
        Ok(())
    }
}
