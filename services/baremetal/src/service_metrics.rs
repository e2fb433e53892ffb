//! The metrics of baremetald, and the counts of nodes that a scrape reads.

use baremetal_conductor::ConductorMetrics;
use baremetal_store::{Store, StoreError};
use daemon::ScrapeCounts;
use metrics::{
    CloudMetrics, Metrics, NodeCount, NodeGauges, RequestMetrics, StateMetrics, WriteMetrics,
};
use openstack::CallObserver;

/// The page of metrics, and the handles with which the parts of the service count.
pub(crate) struct ServiceMetrics {
    pub(crate) page: Metrics,
    pub(crate) requests: RequestMetrics,
    pub(crate) writes: WriteMetrics,
    pub(crate) states: StateMetrics,
    pub(crate) cloud_calls: CloudMetrics,
    pub(crate) conductor: ConductorMetrics,
    pub(crate) nodes: NodeGauges,
}

impl ServiceMetrics {
    pub(crate) fn new() -> Self {
        let mut page = Metrics::new("baremetald", env!("CARGO_PKG_VERSION"));
        ServiceMetrics {
            requests: page.requests(),
            writes: page.writes(),
            states: page.states(),
            cloud_calls: page.cloud_calls(),
            conductor: ConductorMetrics {
                turns: page.turns(),
                bmc_calls: page.bmc_calls(),
                sweeps: page.sweeps(),
            },
            nodes: page.nodes(),
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

/// Counts the nodes in the database.
pub(crate) struct NodeCounts {
    pub(crate) store: Store,
    pub(crate) gauges: NodeGauges,
}

impl ScrapeCounts for NodeCounts {
    type Error = StoreError;

    async fn refresh(&self) -> Result<(), StoreError> {
        let (counts, faults) = self.store.tally_conditions().await?;
        self.gauges.replace(counts.into_iter().map(|it| NodeCount {
            provision_state: it.state.as_str(),
            is_busy: it.is_busy,
            is_failed: it.is_failed,
            count: it.count,
        }));
        self.gauges
            .replace_faults(faults.into_iter().map(|(fault, count)| (fault.as_str(), count)));
        Ok(())
    }
}
