//! What a cluster takes of a project's quota.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Key, Shape, Thing};

/// What a flavor gives a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlavorSize {
    /// Processors.
    pub vcpus: u64,
    /// Memory in MiB.
    pub ram_mib: u64,
    /// Its root disk in GiB.
    pub disk_gib: u64,
    /// GPUs.
    pub gpus: u64,
}

/// How much of each resource, in the words of the services that count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Nova's.
    pub instances: u64,
    /// Nova's; without machines whose flavor is not known.
    pub cores: u64,
    /// Nova's, in MiB; without machines whose flavor is not known.
    pub ram_mib: u64,
    /// Nova's.
    pub server_groups: u64,
    /// Neutron's.
    pub networks: u64,
    /// Neutron's.
    pub subnets: u64,
    /// Neutron's.
    pub routers: u64,
    /// Neutron's.
    pub ports: u64,
    /// Neutron's.
    pub security_groups: u64,
    /// Neutron's.
    pub security_group_rules: u64,
    /// Neutron's.
    pub floating_ips: u64,
    /// Octavia's.
    pub load_balancers: u64,
    /// Octavia's.
    pub listeners: u64,
    /// Octavia's.
    pub members: u64,
    /// Cinder's.
    pub volumes: u64,
    /// Cinder's, in GiB.
    pub gigabytes: u64,
    /// Designate's.
    pub recordsets: u64,
}

/// A resource of which there is not enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// Which.
    pub resource: &'static str,
    /// How much is needed.
    pub needed: u64,
    /// How much there is.
    pub free: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} free)", self.needed, self.resource, self.free)
    }
}

impl Need {
    /// Each resource by name.
    pub fn each(&self) -> [(&'static str, u64); 17] {
        [
            ("instances", self.instances),
            ("cores", self.cores),
            ("ram_mib", self.ram_mib),
            ("server_groups", self.server_groups),
            ("networks", self.networks),
            ("subnets", self.subnets),
            ("routers", self.routers),
            ("ports", self.ports),
            ("security_groups", self.security_groups),
            ("security_group_rules", self.security_group_rules),
            ("floating_ips", self.floating_ips),
            ("load_balancers", self.load_balancers),
            ("listeners", self.listeners),
            ("members", self.members),
            ("volumes", self.volumes),
            ("gigabytes", self.gigabytes),
            ("recordsets", self.recordsets),
        ]
    }
}

/// What all of `shape` takes but for what `has` says is there already.
pub fn need(
    shape: &Shape,
    flavors: &BTreeMap<String, FlavorSize>,
    has: impl Fn(&Key) -> bool,
) -> Need {
    let mut need = Need::default();
    for (_, object) in shape.iter().filter(|(key, _)| !has(key)) {
        match &object.thing {
            Thing::Network => need.networks += 1,
            Thing::Subnet { .. } => need.subnets += 1,
            Thing::Router { .. } => need.routers += 1,
            // A leg of a router is a port.
            Thing::RouterInterface | Thing::Port { .. } => need.ports += 1,
            Thing::SecurityGroup { rules } => {
                need.security_groups += 1;
                // Neutron adds two of its own that let traffic out.
                need.security_group_rules += rules.len() as u64 + 2;
            }
            Thing::ServerGroup { .. } => need.server_groups += 1,
            Thing::LoadBalancer { listeners, members, .. } => {
                need.load_balancers += 1;
                need.listeners += listeners.len() as u64;
                need.members += (listeners.len() * members.len()) as u64;
            }
            Thing::FloatingIp { .. } => need.floating_ips += 1,
            Thing::Record { .. } => need.recordsets += 1,
            Thing::Credential => {}
            Thing::Volume { size, .. } => {
                need.volumes += 1;
                need.gigabytes += u64::from(*size);
            }
            Thing::Server { flavor, disks, .. } => {
                need.instances += 1;
                if let Some(size) = flavor.as_ref().and_then(|flavor| flavors.get(flavor)) {
                    need.cores += size.vcpus;
                    need.ram_mib += size.ram_mib;
                }
                need.volumes += disks.len() as u64;
                need.gigabytes += disks.iter().map(|disk| u64::from(disk.size)).sum::<u64>();
            }
        }
    }
    need
}

/// Of which resources `free` has less than `need`. What `free` does not name is not limited.
pub fn shortages(need: &Need, free: &BTreeMap<String, u64>) -> Vec<Shortage> {
    let short = |(resource, needed): (&'static str, u64)| {
        let free = *free.get(resource)?;
        (needed > free).then_some(Shortage { resource, needed, free })
    };
    need.each().into_iter().filter_map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::shape;

    #[test]
    fn what_a_cluster_takes_is_known_before_anything_is_made() {
        let sample = Sample::highly_available();
        let shape = shape(&sample.spec());
        let large = FlavorSize { vcpus: 4, ram_mib: 8192, ..FlavorSize::default() };
        let flavors = BTreeMap::from([("m1.large".to_owned(), large)]);
        let need = need(&shape, &flavors, |_| false);
        assert_eq!((need.instances, need.cores, need.ram_mib), (5, 20, 40960));
        assert_eq!((need.networks, need.routers, need.load_balancers), (1, 1, 1));
        // Five machines, the router's leg, the load balancer's address.
        assert_eq!((need.ports, need.floating_ips, need.members), (7, 1, 3));

        let free = BTreeMap::from([("instances".to_owned(), 4), ("cores".to_owned(), 20)]);
        let short = shortages(&need, &free);
        assert_eq!(short, [Shortage { resource: "instances", needed: 5, free: 4 }]);
    }

    #[test]
    fn what_is_there_is_not_counted_again() {
        let sample = Sample::highly_available();
        let shape = shape(&sample.spec());
        assert_eq!(need(&shape, &BTreeMap::new(), |_| true), Need::default());
    }
}
