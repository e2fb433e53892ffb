//! Allocates and releases IP addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{refuse, types};
use crate::cidr::{self, address, number};
use crate::object::{Kind, Object, ReadFields};
use crate::request::ApiResult;
use crate::world::World;

/// The addresses of a new port: those in `wanted`, or one address for each IP version of the network.
pub(super) fn allocate(
    world: &mut World,
    network: &str,
    wanted: Option<&[Value]>,
) -> ApiResult<Vec<Value>> {
    let subnets = world.store.ids(Kind::Subnet, "network_id", network);
    let mut got = Vec::new();
    let Some(wanted) = wanted else {
        for version in [4, 6] {
            let all = world.store.with_text(Kind::Subnet, "network_id", network);
            let these = all.filter(|subnet| subnet.number("ip_version") == version);
            let these: Vec<String> = these.map(|subnet| subnet.id.clone()).collect();
            if !these.is_empty() {
                let one = these.iter().find_map(|subnet| free(world, subnet));
                got.push(one.ok_or_else(|| refuse::network_full(network))?);
            }
        }
        return Ok(got);
    };
    for one in wanted {
        match pick(world, network, &subnets, one) {
            Ok(ip) => got.push(ip),
            Err(problem) => {
                release(world, &got);
                return Err(problem);
            }
        }
    }
    Ok(got)
}

pub(super) fn range_of(world: &World, subnet: &str) -> Option<IpNet> {
    cidr::parse(world.store.get(Kind::Subnet, subnet)?.text("cidr"))
}

fn pick(world: &mut World, network: &str, subnets: &[String], wanted: &Value) -> ApiResult<Value> {
    let given = wanted["ip_address"].as_str();
    let holds =
        |subnet: &str, ip: &IpAddr| range_of(world, subnet).is_some_and(|range| range.contains(ip));
    let subnet = match (wanted["subnet_id"].as_str(), given) {
        (Some(id), _) => id.to_owned(),
        (None, Some(text)) => {
            let ip: Option<IpAddr> = text.parse().ok();
            let found = subnets.iter().find(|id| ip.is_some_and(|ip| holds(id, &ip)));
            found.ok_or_else(|| refuse::outside_network(text))?.clone()
        }
        (None, None) => return Err(refuse::ip_needed()),
    };
    if !subnets.contains(&subnet) {
        return Err(match world.store.get(Kind::Subnet, &subnet) {
            Some(_) => refuse::other_network(network, subnet),
            None => types::of(Kind::Subnet).missing(&subnet),
        });
    }
    let Some(text) = given else {
        return free(world, &subnet).ok_or_else(|| refuse::subnet_full(subnet));
    };
    let ip: IpAddr = text.parse().map_err(|_| refuse::bad_ip(text))?;
    if !holds(&subnet, &ip) {
        return Err(refuse::outside_subnet(text));
    }
    if !world.records.addresses.entry(subnet.clone()).or_default().insert(ip) {
        return Err(refuse::ip_taken(text, subnet));
    }
    Ok(json!({"subnet_id": subnet, "ip_address": text}))
}

/// The next free address in the pools of a subnet.
fn free(world: &mut World, id: &str) -> Option<Value> {
    let subnet = world.store.get(Kind::Subnet, id)?;
    let from: u128 = subnet.note("cursor").parse().unwrap_or_default();
    let ranges: Vec<(u128, u128, bool)> =
        subnet.list("allocation_pools").iter().filter_map(range).collect();
    let used = world.records.addresses.entry(id.to_owned()).or_default();
    let later = ranges.iter().map(|(first, last, v6)| ((*first).max(from), *last, *v6));
    let all = later.chain(ranges.iter().copied());
    let found = all
        .flat_map(|(first, last, v6)| (first..=last).map(move |number| address(number, v6)))
        .find(|ip| !used.contains(ip))?;
    used.insert(found);
    world.store.keep(Kind::Subnet, id, "cursor", (number(found) + 1).to_string());
    Some(json!({"subnet_id": id, "ip_address": found.to_string()}))
}

fn range(pool: &Value) -> Option<(u128, u128, bool)> {
    let first: IpAddr = pool["start"].as_str()?.parse().ok()?;
    let last: IpAddr = pool["end"].as_str()?.parse().ok()?;
    Some((number(first), number(last), first.is_ipv6()))
}

pub(super) fn release(world: &mut World, ips: &[Value]) {
    for ip in ips {
        let used = world.records.addresses.get_mut(ip.text("subnet_id"));
        if let (Some(used), Ok(ip)) = (used, ip.text("ip_address").parse()) {
            used.remove(&ip);
        }
    }
}

/// The first address of a port, and its subnet. Both are empty if the port has no address.
pub(super) fn first(port: &Object) -> (&str, &str) {
    let ip = port.list("fixed_ips").first();
    ip.map(|ip| (ip.text("ip_address"), ip.text("subnet_id"))).unwrap_or_default()
}
