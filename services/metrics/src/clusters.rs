//! The numbers of clusters, of their members and of VMs.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The numbers of clusters, of their members and of VMs, as the database counted them last. Clones are the same gauges.
#[derive(Clone, Debug, Default)]
pub struct ClusterGauges {
    clusters: Gauge,
    members: Gauge,
    vms: Gauge,
}

impl ClusterGauges {
    /// Replaces the numbers.
    pub fn set(&self, clusters: u64, members: u64, vms: u64) {
        let counts = [(&self.clusters, clusters), (&self.members, members), (&self.vms, vms)];
        for (gauge, count) in counts {
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
        registry.register("bedplate_vms", "VMs in the database", self.vms.clone());
    }
}
