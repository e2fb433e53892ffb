//! Where a cluster and its machines are reached.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::{Balancer, ClusterSpec, GroupRole, Key, MachineRef, NodeGroup, Seen};

/// Where users find the API, `https://ADDRESS:PORT`, once that is known: from outside where there is a way.
///
/// Without a load balancer it is the first machine of the control plane; of several, `api.NAME.ZONE` has all addresses.
pub fn api_address(spec: &ClusterSpec<'_>, seen: &Seen) -> Option<String> {
    let blueprint = &spec.cluster.blueprint;
    let masters = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    let mut masters = masters.flat_map(NodeGroup::refs);
    let address = if blueprint.master_lb_enabled {
        let (outside, inside) = (Key::BalancerAddress(Balancer::Api), Key::VipPort(Balancer::Api));
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

/// Where each machine is, of those that have an address: the floating one where machines have one.
pub fn machine_addresses(spec: &ClusterSpec<'_>, seen: &Seen) -> BTreeMap<MachineRef, IpAddr> {
    let all = spec.groups.iter().flat_map(NodeGroup::refs);
    all.filter_map(|machine| Some((machine.clone(), machine_address(spec, seen, machine)?)))
        .collect()
}

fn machine_address(spec: &ClusterSpec<'_>, seen: &Seen, machine: MachineRef) -> Option<IpAddr> {
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
    use crate::sample::Sample;

    #[test]
    fn users_are_sent_to_the_floating_address_and_to_ports_where_there_is_none() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        let of = |key: Key| seen.objects[&key].address.unwrap();
        let floating = of(Key::BalancerAddress(Balancer::Api));
        let want = format!("https://{floating}:6443");
        assert_eq!(api_address(&sample.spec(), &seen), Some(want));
        let first = MachineRef { group: "default-worker".parse().unwrap(), number: 0 };
        let addresses = machine_addresses(&sample.spec(), &seen);
        assert_eq!((addresses.len(), addresses[&first]), (5, of(Key::Port(first))));

        let mut alone = Sample::smallest();
        let seen = alone.complete();
        let first = MachineRef { group: "default-master".parse().unwrap(), number: 0 };
        let want = format!("https://{}:6443", seen.objects[&Key::Port(first)].address.unwrap());
        assert_eq!(api_address(&alone.spec(), &seen), Some(want));
        assert_eq!(api_address(&alone.spec(), &Seen::default()), None);
    }
}
