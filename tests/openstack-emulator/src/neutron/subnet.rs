//! The subnets of networks.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::address::range_of;
use super::object::{merge, visible};
use super::{port, refuse};
use crate::cidr::{self, address, number};
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::world::World;

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    given: &Fields,
) -> ApiResult<String> {
    let network_id = object.text("network_id").to_owned();
    let network = visible(world, asked, Kind::Network, &network_id)?;
    if !asked.sees(&network.project) {
        return Err(refuse::not_allowed("rule:create_subnet and rule:network_owner"));
    }
    let (text, version) = (object.text("cidr"), object.number("ip_version"));
    let cidr = cidr::parse(text).ok_or_else(|| refuse::bad_cidr(text))?;
    if version != if cidr::is_v6(cidr) { 6 } else { 4 } {
        return Err(refuse::other_version(version, text));
    }
    let overlaps = |other: &Object| {
        cidr::parse(other.text("cidr")).is_some_and(|other| cidr::overlap(other, cidr))
    };
    if world.store.with_text(Kind::Subnet, "network_id", &network_id).any(overlaps) {
        return Err(refuse::overlap(cidr, network_id));
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
    let (id, project, dhcp) = (object.id.clone(), object.project.clone(), object.is("enable_dhcp"));
    world.store.insert(Kind::Subnet, object);
    world.store.change(Kind::Network, &network_id, |it| it.body.push_to("subnets", id.as_str()));
    if dhcp {
        // A DHCP agent or OVN takes an address in the subnet. Its port is deleted with the network.
        let body = json!({"network_id": network_id, "device_owner": "network:dhcp", "device_id": format!("dhcp-{network_id}"), "fixed_ips": [{"subnet_id": id}], "status": "ACTIVE", "port_security_enabled": false});
        port::make(world, &project, body)?;
    }
    Ok(id)
}

/// Allocation pools of all host addresses except the gateway's.
fn pools(cidr: IpNet, gateway: Option<IpAddr>) -> Vec<Value> {
    let (first, last) = (number(cidr::at(cidr, 1)), number(cidr::last_host(cidr)));
    let gateway = gateway.map(number).filter(|gateway| (first..=last).contains(gateway));
    let ranges = match gateway {
        Some(gateway) => vec![(first, gateway - 1), (gateway + 1, last)],
        None => vec![(first, last)],
    };
    let text = |number| address(number, cidr::is_v6(cidr)).to_string();
    let ranges = ranges.into_iter().filter(|(from, to)| from <= to);
    ranges.map(|(from, to)| json!({"start": text(from), "end": text(to)})).collect()
}

fn check_pools(cidr: IpNet, pools: &[Value]) -> ApiResult {
    let within = |ip: &str| ip.parse::<IpAddr>().is_ok_and(|ip| cidr.contains(&ip));
    let is_right = |pool: &&Value| within(pool.text("start")) && within(pool.text("end"));
    match pools.iter().find(|pool| !is_right(pool)) {
        Some(pool) => Err(refuse::bad_pool(pool, cidr)),
        None => Ok(()),
    }
}

pub(super) fn change(world: &mut World, _: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    if let Some(cidr) = range_of(world, id) {
        check_pools(cidr, given.list("allocation_pools"))?;
    }
    merge(world, Kind::Subnet, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    port::delete_dhcp(world, "fixed_ips", id, |ids| refuse::subnet_in_use(id, ids[0]))?;
    remove(world, id);
    Ok(())
}

pub(super) fn remove(world: &mut World, id: &str) {
    let Some(subnet) = world.store.remove(Kind::Subnet, id) else { return };
    world.records.addresses.remove(id);
    let network = subnet.text("network_id");
    world.store.change(Kind::Network, network, |it| it.body.drop_from("subnets", |one| one == id));
}
