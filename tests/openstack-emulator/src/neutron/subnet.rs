//! The subnets of networks.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::object::{merge, visible};
use super::port::{delete as delete_port, make as make_port};
use crate::cidr::{self, address, number};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::World;

fn invalid(why: impl Into<String>) -> ApiError {
    ApiError::new(400, "InvalidInput", format!("Invalid input for operation: {}.", why.into()))
}

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    let network_id = object.text("network_id").to_owned();
    let network = visible(world, asked, Kind::Network, &network_id)?;
    if !asked.sees(&network.project) {
        return Err(ApiError::forbidden(
            "(rule:create_subnet and rule:network_owner) is disallowed by policy",
        ));
    }
    let text = object.text("cidr").to_owned();
    let cidr = cidr::parse(&text).ok_or_else(|| {
        ApiError::bad(format!("Invalid input for cidr. Reason: '{text}' is not a valid IP subnet."))
    })?;
    if object.number("ip_version") != if cidr::is_v6(cidr) { 6 } else { 4 } {
        return Err(invalid(format!(
            "ip_version '{}' does not match the CIDR '{text}'",
            object.number("ip_version")
        )));
    }
    for sibling in world.store.with_text(Kind::Subnet, "network_id", &network_id) {
        if cidr::parse(sibling.text("cidr")).is_some_and(|other| cidr::overlap(other, cidr)) {
            return Err(invalid(format!(
                "Requested subnet with cidr: {} for network: {network_id} overlaps with another subnet",
                cidr
            )));
        }
    }
    object.set("cidr", cidr.to_string());
    if !given.contains_key("gateway_ip") {
        object.set("gateway_ip", cidr::at(cidr, 1).to_string());
    }
    if object.list("allocation_pools").is_empty() {
        let gateway = object.text("gateway_ip").parse().ok();
        object.set("allocation_pools", pools(cidr, gateway));
    }
    check_pools(cidr, object.list("allocation_pools"))?;
    let id = object.id.clone();
    let dhcp = object.is("enable_dhcp");
    let project = object.project.clone();
    world.store.insert(Kind::Subnet, object);
    if let Some(network) = world.store.get_mut(Kind::Network, &network_id) {
        let mut subnets = network.list("subnets").to_vec();
        subnets.push(json!(id));
        network.set("subnets", subnets);
    }
    if dhcp {
        // A DHCP agent or OVN takes an address in the subnet. Its port is deleted with the network.
        let port = json!({"network_id": network_id, "device_owner": "network:dhcp", "device_id": format!("dhcp-{network_id}"), "fixed_ips": [{"subnet_id": id}], "status": "ACTIVE", "port_security_enabled": false});
        make_port(world, &project, port)?;
    }
    Ok(id)
}

/// Allocation pools of all host addresses except the gateway's.
fn pools(cidr: IpNet, gateway: Option<IpAddr>) -> Vec<Value> {
    let (first, last) = (number(cidr::at(cidr, 1)), number(cidr::last_host(cidr)));
    let pool = |from: u128, to: u128| json!({"start": address(from, cidr::is_v6(cidr)).to_string(), "end": address(to, cidr::is_v6(cidr)).to_string()});
    match gateway.map(number) {
        Some(gateway) if (first..=last).contains(&gateway) => {
            let mut pools = Vec::new();
            if gateway > first {
                pools.push(pool(first, gateway - 1));
            }
            if gateway < last {
                pools.push(pool(gateway + 1, last));
            }
            pools
        }
        _ => vec![pool(first, last)],
    }
}

fn check_pools(cidr: IpNet, pools: &[Value]) -> Result<(), ApiError> {
    for pool in pools {
        let end = |key: &str| pool[key].as_str().and_then(|text| text.parse::<IpAddr>().ok());
        let within = |key: &str| end(key).is_some_and(|address| cidr.contains(&address));
        if !within("start") || !within("end") {
            return Err(ApiError::new(
                400,
                "OutOfBoundsAllocationPool",
                format!("The allocation pool {pool} spans beyond the subnet cidr {}.", cidr),
            ));
        }
    }
    Ok(())
}

pub(super) fn change(
    world: &mut World,
    _: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let cidr =
        world.store.get(Kind::Subnet, id).and_then(|subnet| cidr::parse(subnet.text("cidr")));
    if let (Some(cidr), Some(pools)) =
        (cidr, given.get("allocation_pools").and_then(Value::as_array))
    {
        check_pools(cidr, pools)?;
    }
    merge(world, Kind::Subnet, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    let ports = world.store.with_text(Kind::Port, "fixed_ips", id);
    let (own, others): (Vec<&Object>, Vec<&Object>) =
        ports.partition(|port| port.text("device_owner") == "network:dhcp");
    if let Some(port) = others.first() {
        return Err(ApiError::new(
            409,
            "SubnetInUse",
            format!(
                "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet (port {}).",
                port.id
            ),
        ));
    }
    let own: Vec<String> = own.iter().map(|port| port.id.clone()).collect();
    for port in own {
        delete_port(world, &port);
    }
    remove(world, id);
    Ok(())
}

/// Removes a subnet from its network.
pub(super) fn remove(world: &mut World, id: &str) {
    let Some(subnet) = world.store.remove(Kind::Subnet, id) else { return };
    world.addresses.remove(id);
    if let Some(network) = world.store.get_mut(Kind::Network, subnet.text("network_id")) {
        let left: Vec<Value> =
            network.list("subnets").iter().filter(|one| *one != id).cloned().collect();
        network.set("subnets", left);
    }
}
