//! The amount of a project's cloud quotas that a cluster needs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::{DesiredObjects, FlavorSize, Key, ResourceSpec};

/// The amount of each quota of the cloud that a cluster needs, by the name that Nova, Neutron, Octavia, Cinder or Designate uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QuotaNeed {
    pub instances: u64,
    /// Without servers whose flavor is not known.
    pub cores: u64,
    /// In MiB, without servers whose flavor is not known.
    pub ram_mib: u64,
    pub server_groups: u64,
    pub networks: u64,
    pub subnets: u64,
    pub routers: u64,
    pub ports: u64,
    pub security_groups: u64,
    pub security_group_rules: u64,
    pub floating_ips: u64,
    pub load_balancers: u64,
    pub listeners: u64,
    pub members: u64,
    pub volumes: u64,
    /// Of Cinder volumes, in GiB.
    pub gigabytes: u64,
    pub recordsets: u64,
}

/// A quota that is too small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuotaShortage {
    pub resource: &'static str,
    pub needed: u64,
    pub free: u64,
}

impl fmt::Display for QuotaShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} free)", self.needed, self.resource, self.free)
    }
}

impl QuotaNeed {
    /// Returns the name and the amount of each quota.
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

/// Sums up the quota that the objects of `shape` need, without the objects for which `has` returns true.
pub fn quota_need(
    shape: &DesiredObjects,
    flavors: &BTreeMap<String, FlavorSize>,
    has: impl Fn(&Key) -> bool,
) -> QuotaNeed {
    let mut need = QuotaNeed::default();
    for (_, object) in shape.iter().filter(|(key, _)| !has(key)) {
        match &object.thing {
            ResourceSpec::Network => need.networks += 1,
            ResourceSpec::Subnet { .. } => need.subnets += 1,
            ResourceSpec::Router { .. } => need.routers += 1,
            // The interface of a router is a port.
            ResourceSpec::RouterInterface | ResourceSpec::Port { .. } => need.ports += 1,
            ResourceSpec::SecurityGroup { rules } => {
                need.security_groups += 1;
                // Neutron adds two egress rules to each group.
                need.security_group_rules += rules.len() as u64 + 2;
            }
            ResourceSpec::ServerGroup { .. } => need.server_groups += 1,
            ResourceSpec::LoadBalancer { listeners, members, .. } => {
                need.load_balancers += 1;
                need.listeners += listeners.len() as u64;
                need.members += (listeners.len() * members.len()) as u64;
            }
            ResourceSpec::FloatingIp { .. } => need.floating_ips += 1,
            ResourceSpec::Record { .. } => need.recordsets += 1,
            ResourceSpec::Credential => {}
            ResourceSpec::Volume { size, .. } => {
                need.volumes += 1;
                need.gigabytes += u64::from(*size);
            }
            ResourceSpec::Server { flavor, disks, .. } => {
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

/// Returns the quotas of which `free` has less than `need`. A quota that `free` does not name is unlimited.
pub fn shortages(need: &QuotaNeed, free: &BTreeMap<String, u64>) -> Vec<QuotaShortage> {
    let short = |(resource, needed): (&'static str, u64)| {
        let free = *free.get(resource)?;
        (needed > free).then_some(QuotaShortage { resource, needed, free })
    };
    need.each().into_iter().filter_map(short).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample::Sample;
    use crate::{
        Cidr, DesiredObject, IngressRule, Listener, Protocol, Reference, RuleSource, ServerVolume,
        desired_objects,
    };

    #[test]
    fn the_need_of_a_cluster_is_known_before_anything_is_created() {
        let sample = Sample::highly_available();
        let shape = desired_objects(&sample.spec());
        let large = FlavorSize { vcpus: 4, ram_mib: 8192, ..FlavorSize::default() };
        let flavors = BTreeMap::from([("m1.large".to_owned(), large)]);
        let need = quota_need(&shape, &flavors, |_| false);
        assert_eq!((need.instances, need.cores, need.ram_mib), (5, 20, 40960));
        assert_eq!((need.networks, need.routers, need.load_balancers), (1, 1, 1));
        // Five servers, the router interface, the load balancer's VIP.
        assert_eq!((need.ports, need.floating_ips, need.members), (7, 1, 3));

        let free = BTreeMap::from([("instances".to_owned(), 4), ("cores".to_owned(), 20)]);
        let short = shortages(&need, &free);
        assert_eq!(short, [QuotaShortage { resource: "instances", needed: 5, free: 4 }]);
    }

    /// One object of each kind.
    fn one_of_each() -> Vec<ResourceSpec> {
        let text = || "a".to_owned();
        let listener = |name| Listener { name, port: 80, idle_timeout_ms: 1 };
        let disk = |size| ServerVolume { purpose: "etcd", size, kind: None };
        let keys = ["port/a-1", "port/a-2", "port/a-3"].map(|text| text.parse().unwrap());
        let cidr = Cidr::v4([10, 0, 0, 0], 24);
        let rule = IngressRule {
            protocol: Protocol::Tcp,
            ports: Some((22, 22)),
            from: RuleSource::Range(cidr),
        };
        vec![
            ResourceSpec::Network,
            ResourceSpec::Subnet { cidr, name_servers: vec![] },
            ResourceSpec::Router { external_network: text() },
            ResourceSpec::RouterInterface,
            ResourceSpec::SecurityGroup { rules: BTreeSet::from([rule]) },
            ResourceSpec::ServerGroup { policy: "anti-affinity" },
            ResourceSpec::Port {
                network: Reference::Given(text()),
                subnet: None,
                groups: BTreeSet::new(),
                allowed: BTreeSet::new(),
            },
            ResourceSpec::LoadBalancer {
                provider: None,
                algorithm: "ROUND_ROBIN",
                listeners: vec![listener("http"), listener("https")],
                allowed: vec![],
                members: BTreeSet::from(keys),
            },
            ResourceSpec::FloatingIp { external_network: text(), port: Key::RootVolume },
            ResourceSpec::Record { zone: text(), host: text(), of: BTreeSet::new() },
            ResourceSpec::Server {
                image: text(),
                flavor: Some("m1".to_owned()),
                keypair: None,
                availability_zone: None,
                disks: vec![disk(3), disk(4)],
            },
            ResourceSpec::Volume { image: text(), size: 7, availability_zone: None },
            ResourceSpec::Credential,
        ]
    }

    #[test]
    fn every_object_takes_its_quota() {
        let twice = one_of_each().into_iter().chain(one_of_each()).enumerate();
        let object = |thing| DesiredObject { name: String::new(), thing, needs: BTreeSet::new() };
        let shape: DesiredObjects =
            twice.map(|(n, thing)| (Key::Volume(n.to_string()), object(thing))).collect();
        let size = FlavorSize { vcpus: 4, ram_mib: 512, ..FlavorSize::default() };
        let need = quota_need(&shape, &BTreeMap::from([("m1".to_owned(), size)]), |_| false);
        let want = QuotaNeed {
            instances: 2,
            cores: 8,
            ram_mib: 1024,
            server_groups: 2,
            networks: 2,
            subnets: 2,
            routers: 2,
            // A router interface is a port.
            ports: 4,
            security_groups: 2,
            // With two egress rules of each group.
            security_group_rules: 6,
            floating_ips: 2,
            load_balancers: 2,
            listeners: 4,
            members: 12,
            volumes: 6,
            gigabytes: 28,
            recordsets: 2,
        };
        assert_eq!(need, want);
        let free = need.each().map(|(name, amount)| (name.to_owned(), amount));
        assert_eq!(shortages(&need, &BTreeMap::from(free.clone())), []);
        let less = free.map(|(name, amount)| (name, amount - 1));
        assert_eq!(shortages(&need, &BTreeMap::from(less)).len(), 17);
    }

    #[test]
    fn existing_objects_are_not_counted_again() {
        let sample = Sample::highly_available();
        let shape = desired_objects(&sample.spec());
        assert_eq!(quota_need(&shape, &BTreeMap::new(), |_| true), QuotaNeed::default());
    }
}
