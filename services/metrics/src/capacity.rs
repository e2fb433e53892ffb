//! How much of a site is in use.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::label::label_text;

/// The most resource classes with series of their own.
const MOST_CLASSES: usize = 50;
/// The resource class of nodes without one.
const NO_CLASS: &str = "(none)";
/// The resource class of all nodes whose class has no series of its own.
const OTHER_CLASSES: &str = "(other)";

/// The capacity of baremetald, as the database counted it last. Clones are the same gauges.
#[derive(Clone, Debug, Default)]
pub struct CapacityGauges {
    nodes: Family<CapacityLabels, Gauge>,
    allocations: Family<StateLabels, Gauge>,
    lent_nodes: Gauge,
    dhcp_leases: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CapacityLabels {
    resource_class: String,
    allocation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// The nodes of one resource class.
#[derive(Clone, Debug)]
pub struct ClassCount {
    pub class: Option<String>,
    pub free: u64,
    pub used: u64,
    pub withheld: u64,
}

impl CapacityGauges {
    /// Replaces the numbers of nodes by resource class. The classes with the most nodes get series of their own.
    pub fn replace_classes(&self, mut classes: Vec<ClassCount>) {
        self.nodes.clear();
        classes.sort_by_key(|it| std::cmp::Reverse(it.free + it.used + it.withheld));
        for (rank, it) in classes.iter().enumerate() {
            let class = match &it.class {
                _ if rank >= MOST_CLASSES => OTHER_CLASSES.to_owned(),
                None => NO_CLASS.to_owned(),
                Some(class) => label_text(class),
            };
            let counts = [("free", it.free), ("used", it.used), ("withheld", it.withheld)];
            for (allocation, count) in counts {
                let labels = CapacityLabels { resource_class: class.clone(), allocation };
                self.nodes.get_or_create(&labels).inc_by(signed(count));
            }
        }
    }

    /// Replaces the numbers of allocations by their state. A state that no allocation has is left out.
    pub fn replace_allocations(&self, counts: impl IntoIterator<Item = (&'static str, u64)>) {
        self.allocations.clear();
        for (state, count) in counts {
            self.allocations.get_or_create(&StateLabels { state }).set(signed(count));
        }
    }

    /// Replaces the numbers of leased nodes and of leased addresses.
    pub fn set_leases(&self, lent_nodes: u64, dhcp_leases: u64) {
        self.lent_nodes.set(signed(lent_nodes));
        self.dhcp_leases.set(signed(dhcp_leases));
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_capacity_nodes",
            "Nodes without a parent by resource class, and whether they are free, used or withheld",
            self.nodes.clone(),
        );
        registry.register(
            "bedplate_allocations",
            "Allocations, by their state",
            self.allocations.clone(),
        );
        registry.register("bedplate_leased_nodes", "Nodes with a lease", self.lent_nodes.clone());
        registry.register(
            "bedplate_dhcp_leases",
            "Addresses that DHCP has leased",
            self.dhcp_leases.clone(),
        );
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn the_classes_with_the_most_nodes_have_series_of_their_own() {
        let mut metrics = Metrics::new("test", "0");
        let capacity = metrics.capacity();
        let class = |name: &str, free| ClassCount {
            class: Some(name.to_owned()),
            free,
            used: 1,
            withheld: 0,
        };
        let mut classes: Vec<ClassCount> = (0..60).map(|n| class(&format!("c{n}"), 5)).collect();
        classes.push(class("the \"large\" one", 90));
        classes.push(ClassCount { class: None, ..class("", 80) });
        capacity.replace_classes(classes.clone());
        capacity.replace_classes(classes);
        let page = metrics.text().unwrap();
        for line in [
            r#"bedplate_capacity_nodes{resource_class="the \"large\" one",allocation="free"} 90"#,
            r#"bedplate_capacity_nodes{resource_class="(none)",allocation="free"} 80"#,
            r#"bedplate_capacity_nodes{resource_class="(other)",allocation="free"} 60"#,
            r#"bedplate_capacity_nodes{resource_class="(other)",allocation="used"} 12"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line} in:\n{page}");
        }
        let series = page.lines().filter(|it| it.starts_with("bedplate_capacity_nodes{"));
        assert_eq!(series.count(), 3 * (MOST_CLASSES + 1));
    }
}
