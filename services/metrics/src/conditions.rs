//! The statuses and conditions of clusters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counts clusters by their status and conditions, as the conductor saw them last. Clones count the same clusters.
#[derive(Clone, Debug, Default)]
pub struct ConditionGauges {
    statuses: Family<StatusLabels, Gauge>,
    conditions: Family<ConditionLabels, Gauge>,
    leased: Gauge,
    /// The clusters that are counted now, by their ids, which are not shown.
    counted: Arc<Mutex<HashMap<u128, ClusterConditions>>>,
}

/// The words about one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConditions {
    pub status: &'static str,
    /// Each condition with its status.
    pub conditions: Vec<(&'static str, &'static str)>,
    pub is_leased: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    condition: &'static str,
    status: &'static str,
}

impl ConditionGauges {
    /// Counts a cluster as it is now, in place of how it was before.
    pub fn note(&self, cluster: u128, now: ClusterConditions) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.get(&cluster) == Some(&now) {
            return;
        }
        self.add(&now, 1);
        if let Some(before) = counted.insert(cluster, now) {
            self.add(&before, -1);
        }
    }

    /// Stops counting a cluster, because it is deleted or another conductor counts it.
    pub fn forget(&self, cluster: u128) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = counted.remove(&cluster) {
            self.add(&before, -1);
        }
    }

    /// Stops counting the clusters that `keeps` refuses.
    pub fn retain(&self, keeps: impl Fn(u128) -> bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|&cluster, before| {
            let is_kept = keeps(cluster);
            if !is_kept {
                self.add(before, -1);
            }
            is_kept
        });
    }

    fn add(&self, it: &ClusterConditions, change: i64) {
        self.statuses.get_or_create(&StatusLabels { status: it.status }).inc_by(change);
        for &(condition, status) in &it.conditions {
            let labels = ConditionLabels { condition, status };
            self.conditions.get_or_create(&labels).inc_by(change);
        }
        self.leased.inc_by(i64::from(it.is_leased) * change);
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_cluster_statuses",
            "Clusters by their status in the words of Magnum, as the conductor saw them last",
            self.statuses.clone(),
        );
        registry.register(
            "bedplate_cluster_conditions",
            "Clusters by the status of each of their conditions, as the conductor saw them last",
            self.conditions.clone(),
        );
        registry.register("bedplate_leased_clusters", "Clusters with a lease", self.leased.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn a_cluster_counts_once_until_it_is_deleted() {
        let mut metrics = Metrics::new("test", "0");
        let clusters = metrics.conditions();
        let with = |nodes: &'static str| ClusterConditions {
            status: "CREATE_COMPLETE",
            conditions: vec![("NetworkReady", "true"), ("NodesHealthy", nodes)],
            is_leased: true,
        };
        clusters.note(1, with("false"));
        clusters.note(1, with("true"));
        clusters.note(1, with("true"));
        clusters.note(2, with("true"));
        clusters.forget(2);
        clusters.forget(3);
        clusters.note(4, with("true"));
        clusters.retain(|cluster| cluster == 1);
        let page = metrics.text().unwrap();
        for line in [
            r#"bedplate_cluster_statuses{status="CREATE_COMPLETE"} 1"#,
            r#"bedplate_cluster_conditions{condition="NetworkReady",status="true"} 1"#,
            r#"bedplate_cluster_conditions{condition="NodesHealthy",status="true"} 1"#,
            r#"bedplate_cluster_conditions{condition="NodesHealthy",status="false"} 0"#,
            "bedplate_leased_clusters 1",
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
    }
}
