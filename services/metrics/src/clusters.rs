//! The numbers of clusters and of their members.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The numbers of clusters and of their members, as the database counted them last. Clones are the same gauges.
#[derive(Clone, Debug, Default)]
pub struct ClusterGauges {
    clusters: Gauge,
    members: Gauge,
}

impl ClusterGauges {
    /// Replaces both numbers.
    pub fn set(&self, clusters: u64, members: u64) {
        for (gauge, count) in [(&self.clusters, clusters), (&self.members, members)] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("bedplate_clusters", "Clusters in the database", self.clusters.clone());
        registry.register(
            "bedplate_cluster_members",
            "Members that the node groups of all clusters ask for",
            self.members.clone(),
        );
    }
}
