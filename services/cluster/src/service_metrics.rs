//! The metrics of clusterd, and the counts that a scrape reads.

use cluster_conductor::ConductorMetrics;
use cluster_store::{Scope, Store, StoreError};
use daemon::ScrapeCounts;
use metrics::{CloudMetrics, ClusterGauges, Metrics, RequestMetrics, WriteMetrics};
use openstack::CallObserver;

/// The page of metrics, and the handles with which the parts of the service count.
pub(crate) struct ServiceMetrics {
    pub(crate) page: Metrics,
    pub(crate) requests: RequestMetrics,
    pub(crate) writes: WriteMetrics,
    pub(crate) cloud_calls: CloudMetrics,
    pub(crate) conductor: ConductorMetrics,
    pub(crate) clusters: ClusterGauges,
}

impl ServiceMetrics {
    pub(crate) fn new() -> Self {
        let mut page = Metrics::new("clusterd", env!("CARGO_PKG_VERSION"));
        ServiceMetrics {
            requests: page.requests(),
            writes: page.writes(),
            cloud_calls: page.cloud_calls(),
            conductor: ConductorMetrics { turns: page.turns(), clusters: page.conditions() },
            clusters: page.clusters(),
            page,
        }
    }

    /// Returns the observer of the calls of a cloud.
    pub(crate) fn cloud_observer(&self) -> CallObserver {
        let calls = self.cloud_calls.clone();
        CallObserver::new(move |service, outcome, took| {
            calls.ended(service.as_str(), outcome, took);
        })
    }
}

/// Counts the records in the database.
pub(crate) struct RecordCounts {
    pub(crate) store: Store,
    pub(crate) gauges: ClusterGauges,
}

impl ScrapeCounts for RecordCounts {
    type Error = StoreError;

    async fn refresh(&self) -> Result<(), StoreError> {
        let (clusters, members) = self.store.count_clusters(&Scope::All).await?;
        self.gauges.set(clusters, members, self.store.count_vms().await?);
        Ok(())
    }
}
