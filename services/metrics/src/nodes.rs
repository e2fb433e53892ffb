//! The numbers of nodes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The numbers of nodes, as the database counted them last. Clones are the same gauges.
#[derive(Clone, Debug, Default)]
pub struct NodeGauges {
    nodes: Family<NodeLabels, Gauge>,
    faults: Family<FaultLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    fault: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    provision_state: &'static str,
    busy: bool,
    failed: bool,
}

/// The number of nodes in one condition.
#[derive(Clone, Copy, Debug)]
pub struct NodeCount {
    pub provision_state: &'static str,
    /// Whether work is in progress.
    pub is_busy: bool,
    /// Whether the last work failed.
    pub is_failed: bool,
    pub count: u64,
}

impl NodeGauges {
    /// Replaces all numbers. A condition that is not in `counts` has no node and is left out.
    pub fn replace(&self, counts: impl IntoIterator<Item = NodeCount>) {
        self.nodes.clear();
        for NodeCount { provision_state, is_busy, is_failed, count } in counts {
            let labels = NodeLabels { provision_state, busy: is_busy, failed: is_failed };
            self.nodes.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Replaces the numbers of nodes with each fault. A fault that no node has is left out.
    pub fn replace_faults(&self, counts: impl IntoIterator<Item = (&'static str, u64)>) {
        self.faults.clear();
        for (fault, count) in counts {
            let gauge = self.faults.get_or_create(&FaultLabels { fault });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_nodes",
            "Nodes without a parent, by provision state, whether work is in progress, and whether the last work failed",
            self.nodes.clone(),
        );
        registry.register(
            "bedplate_node_faults",
            "Nodes that the conductor put into maintenance, by fault",
            self.faults.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn a_condition_without_nodes_disappears() {
        let mut metrics = Metrics::new("test", "0");
        let nodes = metrics.nodes();
        let count = |provision_state, count| NodeCount {
            provision_state,
            is_busy: false,
            is_failed: false,
            count,
        };
        nodes.replace([count("available", 3), count("active", 1)]);
        nodes.replace([count("active", 4)]);
        nodes.replace_faults([("power failure", 1)]);
        nodes.replace_faults([("clean failure", 2)]);
        let page = metrics.text().unwrap();
        let lines: Vec<&str> =
            page.lines().filter(|it| it.starts_with("bedplate_nodes{")).collect();
        let active = r#"bedplate_nodes{provision_state="active",busy="false",failed="false"} 4"#;
        assert_eq!(lines, [active]);
        let faults = page.lines().filter(|it| it.starts_with("bedplate_node_faults{"));
        assert_eq!(
            faults.collect::<Vec<_>>(),
            [r#"bedplate_node_faults{fault="clean failure"} 2"#]
        );
    }
}
