//! Allocates and releases IP addresses.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::cidr::{self, address, number};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::world::World;

/// The addresses of a new port: those in `wanted`, or one address for each IP version of the network.
pub(crate) fn allocate(
    world: &mut World,
    network: &str,
    wanted: Option<&[Value]>,
) -> Result<Vec<Value>, ApiError> {
    let subnets = world.store.ids(Kind::Subnet, "network_id", network);
    let Some(wanted) = wanted else {
        let mut got: Vec<Value> = Vec::new();
        for version in [4, 6] {
            let mut these = subnets.iter().filter(|id| {
                world
                    .store
                    .get(Kind::Subnet, id)
                    .is_some_and(|subnet| subnet.number("ip_version") == version)
            });
            let these: Vec<String> = these.by_ref().cloned().collect();
            if these.is_empty() {
                continue;
            }
            let one = these.iter().find_map(|subnet| free(world, subnet));
            let one = one.ok_or_else(|| {
                ApiError::new(
                    409,
                    "IpAddressGenerationFailure",
                    format!("No more IP addresses available on network {network}."),
                )
            })?;
            got.push(one);
        }
        return Ok(got);
    };
    let mut got = Vec::new();
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

fn pick(
    world: &mut World,
    network: &str,
    subnets: &[String],
    wanted: &Value,
) -> Result<Value, ApiError> {
    let given = wanted["ip_address"].as_str();
    let subnet = match (wanted["subnet_id"].as_str(), given) {
        (Some(id), _) => id.to_owned(),
        (None, Some(text)) => {
            let ip: Option<IpAddr> = text.parse().ok();
            let holds = |id: &&String| {
                let cidr = world
                    .store
                    .get(Kind::Subnet, id)
                    .and_then(|subnet| cidr::parse(subnet.text("cidr")));
                cidr.zip(ip).is_some_and(|(cidr, ip)| cidr.contains(&ip))
            };
            let found = subnets.iter().find(holds).cloned();
            found.ok_or_else(|| ApiError::new(400, "InvalidIpForNetwork", format!("IP address {text} is not a valid IP for any of the subnets on the specified network.")))?
        }
        (None, None) => {
            return Err(ApiError::bad(
                "Invalid input for fixed_ips. Reason: IP address or subnet_id must be specified",
            ));
        }
    };
    if !subnets.contains(&subnet) {
        let known = world.store.get(Kind::Subnet, &subnet).is_some();
        return Err(if known {
            ApiError::new(
                400,
                "InvalidInput",
                format!(
                    "Invalid input for operation: Failed to create port on network {network}, because fixed_ips included invalid subnet {subnet}."
                ),
            )
        } else {
            ApiError::new(404, "SubnetNotFound", format!("Subnet {subnet} could not be found."))
        });
    }
    let Some(text) = given else {
        return free(world, &subnet).ok_or_else(|| {
            ApiError::new(
                409,
                "IpAddressGenerationFailure",
                format!("No more IP addresses available for subnet {subnet}."),
            )
        });
    };
    let ip: IpAddr = text.parse().map_err(|_| {
        ApiError::bad(format!(
            "Invalid input for fixed_ips. Reason: '{text}' is not a valid IP address."
        ))
    })?;
    let cidr =
        world.store.get(Kind::Subnet, &subnet).and_then(|subnet| cidr::parse(subnet.text("cidr")));
    if !cidr.is_some_and(|cidr| cidr.contains(&ip)) {
        return Err(ApiError::new(
            400,
            "InvalidIpForSubnet",
            format!("IP address {text} is not a valid IP for the specified subnet."),
        ));
    }
    let taken = !world.addresses.entry(subnet.clone()).or_default().insert(ip);
    if taken {
        return Err(ApiError::new(
            409,
            "IpAddressAlreadyAllocated",
            format!("IP address {text} already allocated in subnet {subnet}."),
        ));
    }
    Ok(json!({"subnet_id": subnet, "ip_address": text}))
}

/// The next free address in the pools of a subnet.
fn free(world: &mut World, id: &str) -> Option<Value> {
    let subnet = world.store.get(Kind::Subnet, id)?;
    let from: u128 = subnet.note("cursor").parse().unwrap_or_default();
    let ranges: Vec<(u128, u128, bool)> =
        subnet.list("allocation_pools").iter().filter_map(range).collect();
    let used = world.addresses.entry(id.to_owned()).or_default();
    let later = ranges.iter().map(|(first, last, v6)| ((*first).max(from), *last, *v6));
    let all = later.chain(ranges.iter().copied());
    let found = all
        .flat_map(|(first, last, v6)| (first..=last).map(move |number| address(number, v6)))
        .find(|ip| !used.contains(ip))?;
    used.insert(found);
    if let Some(subnet) = world.store.get_mut(Kind::Subnet, id) {
        subnet.keep("cursor", (number(found) + 1).to_string());
    }
    Some(json!({"subnet_id": id, "ip_address": found.to_string()}))
}

fn range(pool: &Value) -> Option<(u128, u128, bool)> {
    let first: IpAddr = pool["start"].as_str()?.parse().ok()?;
    let last: IpAddr = pool["end"].as_str()?.parse().ok()?;
    Some((number(first), number(last), first.is_ipv6()))
}

/// Releases addresses.
pub(crate) fn release(world: &mut World, ips: &[Value]) {
    for ip in ips {
        let subnet = ip["subnet_id"].as_str().and_then(|subnet| world.addresses.get_mut(subnet));
        if let (Some(used), Some(ip)) =
            (subnet, ip["ip_address"].as_str().and_then(|ip| ip.parse().ok()))
        {
            used.remove(&ip);
        }
    }
}

/// The first address of a port.
pub(super) fn first(port: &Object) -> &str {
    port.list("fixed_ips").first().and_then(|ip| ip["ip_address"].as_str()).unwrap_or_default()
}
