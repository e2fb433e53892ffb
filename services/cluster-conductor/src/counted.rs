//! Counts clusters by their conditions, for the metrics.

use cluster_core::{Cluster, ClusterUuid, ConditionStatus, status};
use metrics::ClusterConditions;
use newtype_uuid::GenericUuid;
use uuid::Uuid;

use crate::context::{ConductorContext, GROUP, ResourceRef};

impl ConductorContext {
    /// Counts a cluster as its record is now.
    pub(crate) fn count_conditions(&self, cluster: &Cluster) {
        let conditions = cluster.conditions.iter().map(|it| (it.kind.as_str(), word(it.status)));
        let now = ClusterConditions {
            status: status(cluster, (self.settings.clock)()).as_str(),
            conditions: conditions.collect(),
            is_leased: cluster.lending.is_some(),
        };
        self.settings.metrics.clusters.note(cluster.id.into_untyped_uuid().as_u128(), now);
    }

    /// Stops counting a cluster whose record is deleted, or that belongs to another conductor.
    pub(crate) fn uncount_conditions(&self, cluster: ClusterUuid) {
        self.settings.metrics.clusters.forget(cluster.into_untyped_uuid().as_u128());
    }

    /// Stops counting the clusters of other conductors, each of which counts its own.
    pub(crate) fn uncount_others(&self) {
        let cluster =
            |id| ResourceRef::Cluster(ClusterUuid::from_untyped_uuid(Uuid::from_u128(id)));
        self.settings.metrics.clusters.retain(|id| self.membership.has(&cluster(id), GROUP));
    }
}

fn word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "true",
        ConditionStatus::False => "false",
        ConditionStatus::Unknown => "unknown",
    }
}
