//! Routers, their gateways and interfaces.

use serde_json::{Value, json};

use super::address::first;
use super::object::{merge, touch, visible};
use super::port::{delete as delete_port, make as make_port};
use super::route::INTERFACE;
use super::{refuse, types};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::World;

const GATEWAY: &str = "network:router_gateway";

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    given: &Fields,
) -> ApiResult<String> {
    object.set("external_gateway_info", Value::Null);
    let id = object.id.clone();
    world.store.insert(Kind::Router, object);
    let info = given.field("external_gateway_info");
    if !info.is_null()
        && let Err(problem) = set_gateway(world, asked, &id, info)
    {
        world.store.remove(Kind::Router, &id);
        return Err(problem);
    }
    Ok(id)
}

pub(super) fn change(world: &mut World, asked: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    let mut given = given.clone();
    match given.remove("external_gateway_info") {
        None => {}
        Some(info) if info["network_id"].is_string() => set_gateway(world, asked, id, &info)?,
        Some(_) => clear_gateway(world, id)?,
    }
    merge(world, Kind::Router, id, &given);
    Ok(())
}

fn set_gateway(world: &mut World, asked: &ApiRequest, id: &str, info: &Value) -> ApiResult {
    let network_id = info.text("network_id");
    let network = visible(world, asked, Kind::Network, network_id)?;
    if !network.is("router:external") {
        let why = format!("Network {network_id} is not an external network");
        return Err(refuse::bad_router(why));
    }
    let router = world.store.get(Kind::Router, id);
    if router.is_some_and(|it| it.body.field("external_gateway_info")["network_id"] == network_id) {
        return Ok(());
    }
    clear_gateway(world, id)?;
    let mut port = json!({"network_id": network_id, "device_owner": GATEWAY, "device_id": id, "status": "ACTIVE", "port_security_enabled": false});
    if info["external_fixed_ips"].is_array() {
        port["fixed_ips"] = info["external_fixed_ips"].clone();
    }
    let port = make_port(world, "", port)?;
    let ips = world.store.get(Kind::Port, &port).map(|port| port.list("fixed_ips"));
    let snat = info["enable_snat"].as_bool().unwrap_or(true);
    let info = json!({"network_id": network_id, "external_fixed_ips": ips, "enable_snat": snat});
    world.store.set(Kind::Router, id, "external_gateway_info", info);
    Ok(())
}

fn clear_gateway(world: &mut World, id: &str) -> ApiResult {
    let floating = world.store.with_text(Kind::FloatingIp, "router_id", id).next();
    let gateway = ports(world, id).find(|port| port.text("device_owner") == GATEWAY);
    let Some(gateway) = gateway.map(|port| port.id.clone()) else { return Ok(()) };
    if floating.is_some() {
        return Err(refuse::gateway_in_use(id));
    }
    delete_port(world, &gateway);
    world.store.set(Kind::Router, id, "external_gateway_info", Value::Null);
    Ok(())
}

/// Answers `PUT …/add_router_interface`.
pub(super) fn attach(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let project = visible(world, asked, Kind::Router, id)?.project.clone();
    let given = asked.json()?;
    let (subnet_id, port_id) = match (given["subnet_id"].as_str(), given["port_id"].as_str()) {
        (Some(subnet), None) => (subnet, None),
        (None, Some(port_id)) => {
            let port = world.store.get(Kind::Port, port_id);
            let port = port.ok_or_else(|| types::of(Kind::Port).missing(port_id))?;
            let (network, device) = (port.text("network_id"), port.text("device_id"));
            if !device.is_empty() {
                return Err(refuse::port_in_use(port_id, network, device));
            }
            (first(port).1, Some(port_id))
        }
        _ => return Err(refuse::bad_router("Either subnet_id or port_id must be specified")),
    };
    let subnet_id = subnet_id.to_owned();
    let subnet = visible(world, asked, Kind::Subnet, &subnet_id)?;
    let (network, gateway) = (subnet.text("network_id").to_owned(), subnet.text("gateway_ip"));
    if ports(world, id).any(|port| is_in(port, &subnet_id)) {
        let why = format!("Router already has a port on subnet {subnet_id}");
        return Err(refuse::bad_router(why));
    }
    let port_id = match port_id {
        Some(port) => port.to_owned(),
        None if gateway.is_empty() => {
            let why = "Subnet for router interface must have a gateway IP";
            return Err(refuse::bad_router(why));
        }
        None => {
            let ip = json!({"subnet_id": subnet_id, "ip_address": gateway});
            let body = json!({"network_id": network, "fixed_ips": [ip], "device_owner": INTERFACE});
            make_port(world, &project, body)?
        }
    };
    world.store.change(Kind::Port, &port_id, |port| {
        port.set("device_owner", INTERFACE);
        port.set("device_id", id);
        port.set("status", "ACTIVE");
    });
    touch(world, Kind::Router, id);
    Ok(Answer::ok(interface(id, &project, &network, &subnet_id, &port_id)))
}

/// Whether a port has an address in a subnet.
fn is_in(port: &Object, subnet: &str) -> bool {
    port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet)
}

/// Answers `PUT …/remove_router_interface`.
pub(super) fn detach(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let project = visible(world, asked, Kind::Router, id)?.project.clone();
    let given = asked.json()?;
    let (subnet, port) = (given["subnet_id"].as_str(), given["port_id"].as_str());
    let found = ports(world, id).find(|one| {
        one.text("device_owner") == INTERFACE
            && port.is_none_or(|port| port == one.id)
            && subnet.is_none_or(|subnet| is_in(one, subnet))
    });
    let port = found.ok_or_else(|| match subnet {
        Some(subnet) => refuse::no_interface(id, subnet),
        None => refuse::no_interface_port(id, port.unwrap_or_default()),
    })?;
    let port = port.clone();
    let (network, subnet) = (port.text("network_id"), first(&port).1);
    let is_needed = world.store.with_text(Kind::FloatingIp, "router_id", id).any(|ip| {
        let inside = world.store.get(Kind::Port, ip.text("port_id"));
        inside.is_some_and(|inside| inside.text("network_id") == network)
    });
    if is_needed {
        return Err(refuse::interface_in_use(subnet, id));
    }
    delete_port(world, &port.id);
    touch(world, Kind::Router, id);
    Ok(Answer::ok(interface(id, &project, network, subnet, &port.id)))
}

fn interface(id: &str, project: &str, network: &str, subnet: &str, port: &str) -> Value {
    json!({
        "id": id, "tenant_id": project, "project_id": project, "network_id": network, "port_id": port, "subnet_id": subnet,
        "subnet_ids": [subnet], "tags": [],
    })
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    if ports(world, id).any(|port| port.text("device_owner") == INTERFACE) {
        return Err(refuse::router_in_use(id));
    }
    clear_gateway(world, id)?;
    world.store.remove(Kind::Router, id);
    Ok(())
}

fn ports<'w>(world: &'w World, id: &str) -> impl Iterator<Item = &'w Object> + use<'w> {
    world.store.with_text(Kind::Port, "device_id", id)
}
