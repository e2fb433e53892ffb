//! The quota use of a cluster, part by part.

use std::collections::BTreeMap;

use crate::{
    Amounts, ClusterSpec, DesiredObject, FlavorSize, Key, MemberName, NodeGroup, Resource,
    ResourceSpec, ServerVolume, desired_objects,
};

/// The quota use of one part of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUse {
    /// The member; `None`: the parts that belong to no member.
    pub machine: Option<MemberName>,
    pub amounts: Amounts,
    /// Whether the size of the flavor is known and included.
    pub is_measured: bool,
}

/// Computes the quota use of a cluster: of the cluster itself and of each member.
///
/// The size of a flavor is the one recorded when its group was measured ([`NodeGroup::size`]). Load balancers and volumes that Kubernetes
/// creates do not count.
pub fn resource_uses(spec: &ClusterSpec<'_>) -> Vec<ResourceUse> {
    let mut own = ResourceUse {
        machine: None,
        amounts: Amounts::from_iter([(Resource::Clusters, 1)]),
        is_measured: true,
    };
    let sized = |group: &NodeGroup| group.refs().map(|it| (it, group.size)).collect::<Vec<_>>();
    let sizes: BTreeMap<_, _> = spec.groups.iter().flat_map(sized).collect();
    let mut machines: BTreeMap<MemberName, Amounts> = BTreeMap::new();
    for (key, object) in &desired_objects(spec) {
        let amounts = match key.member() {
            Some(machine) => machines.entry(machine.clone()).or_default(),
            None => &mut own.amounts,
        };
        *amounts += &taken(key, object, |machine| sizes.get(machine).copied().flatten());
    }
    let of_machine = |(machine, amounts): (MemberName, Amounts)| ResourceUse {
        is_measured: sizes.get(&machine).copied().flatten().is_some(),
        machine: Some(machine),
        amounts,
    };
    std::iter::once(own).chain(machines.into_iter().map(of_machine)).collect()
}

fn taken(
    key: &Key,
    object: &DesiredObject,
    size: impl Fn(&MemberName) -> Option<FlavorSize>,
) -> Amounts {
    match (key, &object.thing) {
        (Key::Server(machine), ResourceSpec::Server { disks, .. }) => {
            of_server(disks, size(machine))
        }
        (_, ResourceSpec::FloatingIp { .. }) => Amounts::from_iter([(Resource::FloatingIps, 1)]),
        (..) => Amounts::default(),
    }
}

fn of_server(disks: &[ServerVolume], size: Option<FlavorSize>) -> Amounts {
    let volumes: u64 = disks.iter().map(|disk| u64::from(disk.size)).sum();
    let size = size.unwrap_or_default();
    // Nova does not create the disk of the flavor for a server that boots from a volume.
    let root = if disks.iter().any(|disk| disk.purpose == "boot") { 0 } else { size.disk_gib };
    Amounts::from_iter([
        (Resource::Nodes, 1),
        (Resource::Vcpus, size.vcpus),
        (Resource::RamMib, size.ram_mib),
        (Resource::DiskGib, root + volumes),
        (Resource::Gpus, size.gpus),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, labels};

    const LARGE: FlavorSize = FlavorSize { vcpus: 4, ram_mib: 8192, disk_gib: 40, gpus: 1 };

    fn sum(holdings: &[ResourceUse]) -> Amounts {
        holdings.iter().fold(Amounts::default(), |mut sum, holding| {
            sum += &holding.amounts;
            sum
        })
    }

    #[test]
    fn the_use_of_a_cluster_is_that_of_its_members_and_its_floating_ips() {
        let mut sample = Sample::highly_available();
        sample.cluster.blueprint.floating_ip_enabled = true;
        for group in &mut sample.groups {
            group.size = Some(LARGE);
        }
        let all = resource_uses(&sample.spec());
        assert_eq!(all.len(), 1 + 5);
        assert!(all.iter().all(|holding| holding.is_measured));
        let want = [
            (Resource::Clusters, 1),
            (Resource::Nodes, 5),
            (Resource::Vcpus, 20),
            (Resource::RamMib, 40960),
            (Resource::DiskGib, 200),
            (Resource::Gpus, 5),
            (Resource::FloatingIps, 6),
        ];
        assert_eq!(sum(&all), Amounts::from_iter(want));
    }

    #[test]
    fn volumes_count_instead_of_the_flavor_disk_when_a_server_boots_from_one() {
        let mut sample = Sample::highly_available();
        let workers = &mut sample.groups[1];
        workers.size = Some(LARGE);
        workers.docker_volume_size = Some(10);
        workers.labels = labels(&[("boot_volume_size", "25")]);
        let all = resource_uses(&sample.spec());
        assert_eq!(sum(&all)[Resource::DiskGib], 2 * (25 + 10));
        let unmeasured = all.iter().filter(|holding| !holding.is_measured);
        assert_eq!(unmeasured.count(), 3, "the control plane's");
    }

    #[test]
    fn volumes_besides_the_boot_volume_count_with_the_flavor_disk() {
        let mut sample = Sample::smallest();
        let masters = &mut sample.groups[0];
        masters.size = Some(LARGE);
        masters.docker_volume_size = Some(10);
        masters.labels = labels(&[("etcd_volume_size", "8")]);
        assert_eq!(sum(&resource_uses(&sample.spec()))[Resource::DiskGib], 40 + 10 + 8);
    }
}
