//! The addresses and DNS names at which a cluster's API and its members are reached.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::{
    BalancerPurpose, Cluster, ClusterObservation, ClusterSpec, GroupRole, Key, MemberName,
    NodeGroup,
};

/// Returns the URL at which users reach the Kubernetes API, `https://ADDRESS:PORT`, or `None` until the address is known.
///
/// With a load balancer the address is its floating IP, or its VIP when it has no floating IP. Without a load balancer the address is the
/// one of the first control-plane member; the DNS name `api.NAME.ZONE` then leads to all members.
pub fn api_address(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Option<String> {
    let blueprint = &spec.cluster.blueprint;
    let masters = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    let mut masters = masters.flat_map(NodeGroup::refs);
    let address = if blueprint.master_lb_enabled {
        let (outside, inside) =
            (Key::BalancerAddress(BalancerPurpose::Api), Key::VipPort(BalancerPurpose::Api));
        let key = if blueprint.has_floating_balancer() { outside } else { inside };
        seen.objects.get(&key)?.address?
    } else {
        machine_address(spec, seen, masters.next()?)?
    };
    let host = match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    Some(format!("https://{host}:{}", blueprint.api_port()))
}

/// Returns the DNS name of the cluster's API, `api.NAME.ZONE` without the final dot; `None` when the cluster has no DNS zone.
pub fn api_name(cluster: &Cluster) -> Option<String> {
    subdomain(cluster).map(|names| format!("api.{names}"))
}

/// Returns `NAME.ZONE`, below which all DNS names of the cluster are, without the final dot; `None` when the cluster has no DNS zone.
pub fn subdomain(cluster: &Cluster) -> Option<String> {
    let zone = cluster.blueprint.labels.settings().dns_zone.as_deref()?;
    Some(format!("{}.{}", cluster.name.label(63), zone.trim_end_matches('.')))
}

/// Returns the DNS name by which members reach the API, where they do not use an address.
///
/// Members use the name when the control plane has several members and no load balancer: the name leads to the addresses of all of them.
pub fn api_name_for_members(spec: &ClusterSpec<'_>) -> Option<String> {
    let blueprint = &spec.cluster.blueprint;
    // With floating IPs the DNS name leads to the floating IPs, so members would call the API from addresses that `master_lb_allowed_cidrs`
    // cannot list in advance.
    let are_shut_out = blueprint.has_floating_machines()
        && !blueprint.labels.settings().api_allowed_cidrs.is_empty();
    (has_many_masters_without_balancer(spec) && !are_shut_out)
        .then(|| api_name(spec.cluster))
        .flatten()
}

/// Returns a warning when all members reach the API at the address of the first control-plane member alone: if that member is lost, the
/// whole cluster loses its API.
pub fn single_endpoint_warning(spec: &ClusterSpec<'_>) -> Option<&'static str> {
    (has_many_masters_without_balancer(spec) && api_name_for_members(spec).is_none()).then_some(
        "members reach the API at the address of the first control-plane member only, and lose the API with that \
         member: create the cluster with master_lb_enabled, or with the label dns_zone and without \
         master_lb_allowed_cidrs, to get an endpoint that survives",
    )
}

/// Returns from where the API is reachable, when it has no floating IP: clusterd and users may be somewhere else.
pub fn private_api_warning(spec: &ClusterSpec<'_>) -> Option<String> {
    let blueprint = &spec.cluster.blueprint;
    let is_public = match blueprint.master_lb_enabled {
        true => blueprint.has_floating_balancer(),
        false => blueprint.has_floating_machines(),
    };
    let from = match &blueprint.fixed_subnet {
        Some(subnet) => format!("the subnet {}", blueprint.shown(subnet)),
        None => format!("the cluster's own network {}", blueprint.labels.settings().node_cidr),
    };
    (!is_public).then(|| {
        format!("the API has no floating IP, so it is reachable only from {from} and from networks with a route to it")
    })
}

/// Whether the control plane has several members and no load balancer.
fn has_many_masters_without_balancer(spec: &ClusterSpec<'_>) -> bool {
    let masters = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    let count: usize = masters.map(|group| group.machines.len()).sum();
    count > 1 && !spec.cluster.blueprint.master_lb_enabled
}

/// Returns the address of each member that has one: the floating IP where members have floating IPs, otherwise the port's address.
pub fn machine_addresses(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) -> BTreeMap<MemberName, IpAddr> {
    let all = spec.groups.iter().flat_map(NodeGroup::refs);
    all.filter_map(|machine| Some((machine.clone(), machine_address(spec, seen, machine)?)))
        .collect()
}

fn machine_address(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    machine: MemberName,
) -> Option<IpAddr> {
    let key = if spec.cluster.blueprint.has_floating_machines() {
        Key::MachineAddress(machine)
    } else {
        Key::Port(machine)
    };
    seen.objects.get(&key)?.address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, labels};

    #[test]
    fn the_api_address_is_the_floating_ip_or_else_the_address_of_the_port() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        let of = |key: Key| seen.objects[&key].address.unwrap();
        let floating = of(Key::BalancerAddress(BalancerPurpose::Api));
        let want = format!("https://{floating}:6443");
        assert_eq!(api_address(&sample.spec(), &seen), Some(want));
        let first = MemberName { group: "default-worker".parse().unwrap(), number: 0 };
        let addresses = machine_addresses(&sample.spec(), &seen);
        assert_eq!((addresses.len(), addresses[&first]), (5, of(Key::Port(first))));

        let mut alone = Sample::smallest();
        let seen = alone.complete();
        let first = MemberName { group: "default-master".parse().unwrap(), number: 0 };
        let want = format!("https://{}:6443", seen.objects[&Key::Port(first)].address.unwrap());
        assert_eq!(api_address(&alone.spec(), &seen), Some(want));
        assert_eq!(api_address(&alone.spec(), &ClusterObservation::default()), None);
    }

    #[test]
    fn without_a_load_balancer_members_use_the_dns_name_or_a_warning_is_given() {
        let mut sample = Sample::highly_available();
        let said = |sample: &Sample| {
            let spec = sample.spec();
            (api_name_for_members(&spec), single_endpoint_warning(&spec).is_some())
        };
        let zone = ("dns_zone", "k8s.example");
        sample.cluster.blueprint.labels = labels(&[zone]);
        assert_eq!(said(&sample), (None, false));
        sample.cluster.blueprint.master_lb_enabled = false;
        let name = "api.blue.k8s.example".to_owned();
        assert_eq!(said(&sample), (Some(name.clone()), false));

        let few = ("master_lb_allowed_cidrs", "192.0.2.0/24");
        sample.cluster.blueprint.labels = labels(&[zone, few]);
        assert_eq!(said(&sample), (Some(name), false));
        sample.cluster.blueprint.floating_ip_enabled = true;
        assert_eq!(said(&sample), (None, true));
        sample.cluster.blueprint.labels = labels(&[]);
        assert_eq!(said(&sample), (None, true));
        sample.groups[0].machines = [0].into();
        assert_eq!(said(&sample), (None, false));
    }

    #[test]
    fn an_api_without_a_floating_ip_says_from_where_it_is_reachable() {
        let mut sample = Sample::highly_available();
        let said = |sample: &Sample| private_api_warning(&sample.spec());
        assert_eq!(said(&sample), None);
        let from = |from: &str| {
            let why = "the API has no floating IP, so it is reachable only from";
            Some(format!("{why} {from} and from networks with a route to it"))
        };
        sample.cluster.blueprint.labels = labels(&[]);
        assert_eq!(said(&sample), from("the cluster's own network 10.0.0.0/24"));
        sample.cluster.blueprint.master_lb_enabled = false;
        assert_eq!(said(&sample), from("the cluster's own network 10.0.0.0/24"));
        sample.cluster.blueprint.floating_ip_enabled = true;
        assert_eq!(said(&sample), None);
        let mut given = Sample::smallest();
        assert_eq!(said(&given), from("the subnet subnet-1"));
        given.cluster.blueprint.note_name("office", "subnet-1");
        assert_eq!(said(&given), from("the subnet office"));
    }

    #[test]
    fn a_server_that_uses_the_dns_name_of_the_api_needs_the_record() {
        let mut sample = Sample::highly_available();
        let name = Key::Record(crate::DnsName::Api);
        let needs = |sample: &Sample| {
            let shape = crate::desired_objects(&sample.spec());
            let servers = shape.iter().filter(|(key, _)| matches!(key, Key::Server(_)));
            servers.map(|(_, server)| server.needs.contains(&name)).collect::<Vec<_>>()
        };
        sample.cluster.blueprint.labels = labels(&[("dns_zone", "k8s.example")]);
        assert_eq!(needs(&sample), [false; 5]);
        sample.cluster.blueprint.master_lb_enabled = false;
        assert_eq!(needs(&sample), [true; 5]);
    }
}
