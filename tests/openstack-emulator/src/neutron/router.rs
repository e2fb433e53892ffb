//! Routers, their gateways and interfaces.

use serde_json::{Map, Value, json};

use super::object::{merge, touch, visible};
use super::port::{delete as delete_port, make as make_port};
use super::route::INTERFACE;
use super::types;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

const GATEWAY: &str = "network:router_gateway";

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    _: &Map<String, Value>,
) -> Result<String, ApiError> {
    let gateway = object.body.get("external_gateway_info").cloned().filter(|info| !info.is_null());
    object.set("external_gateway_info", Value::Null);
    let id = object.id.clone();
    world.store.insert(Kind::Router, object);
    if let Some(info) = gateway
        && let Err(problem) = set_gateway(world, asked, &id, &info)
    {
        world.store.remove(Kind::Router, &id);
        return Err(problem);
    }
    Ok(id)
}

pub(super) fn change(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let mut given = given.clone();
    match given.remove("external_gateway_info") {
        None => {}
        Some(Value::Object(info)) if info.get("network_id").is_some_and(Value::is_string) => {
            set_gateway(world, asked, id, &Value::Object(info))?;
        }
        Some(_) => clear_gateway(world, id)?,
    }
    merge(world, Kind::Router, id, &given);
    Ok(())
}

fn set_gateway(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    info: &Value,
) -> Result<(), ApiError> {
    let network_id = info["network_id"].as_str().unwrap_or_default().to_owned();
    let network = visible(world, asked, Kind::Network, &network_id)?;
    if !network.is("router:external") {
        return Err(ApiError::new(
            400,
            "BadRequest",
            format!("Bad router request: Network {network_id} is not an external network."),
        ));
    }
    let current = world
        .store
        .get(Kind::Router, id)
        .and_then(|router| router.body.get("external_gateway_info"))
        .cloned();
    if current.as_ref().is_some_and(|current| current["network_id"] == network_id.as_str()) {
        return Ok(());
    }
    clear_gateway(world, id)?;
    let mut port = json!({"network_id": network_id, "device_owner": GATEWAY, "device_id": id, "status": "ACTIVE", "port_security_enabled": false});
    if let Some(ips) = info.get("external_fixed_ips").filter(|ips| ips.is_array()) {
        port["fixed_ips"] = ips.clone();
    }
    let port = make_port(world, "", port)?;
    let ips = world
        .store
        .get(Kind::Port, &port)
        .map(|port| port.list("fixed_ips").to_vec())
        .unwrap_or_default();
    let snat = info["enable_snat"].as_bool().unwrap_or(true);
    if let Some(router) = world.store.get_mut(Kind::Router, id) {
        router.set(
            "external_gateway_info",
            json!({"network_id": network_id, "external_fixed_ips": ips, "enable_snat": snat}),
        );
    }
    Ok(())
}

fn clear_gateway(world: &mut World, id: &str) -> Result<(), ApiError> {
    let floating = world.store.with_text(Kind::FloatingIp, "router_id", id).next();
    let gateway = ports(world, id).find(|port| port.text("device_owner") == GATEWAY);
    let Some(gateway) = gateway.map(|port| port.id.clone()) else { return Ok(()) };
    if floating.is_some() {
        return Err(ApiError::new(
            409,
            "RouterExternalGatewayInUseByFloatingIp",
            format!(
                "Gateway cannot be updated for router {id}, since a gateway to external network is required by one or more floating IPs."
            ),
        ));
    }
    delete_port(world, &gateway);
    if let Some(router) = world.store.get_mut(Kind::Router, id) {
        router.set("external_gateway_info", Value::Null);
    }
    Ok(())
}

/// Answers `PUT …/add_router_interface`.
pub(super) fn attach(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let project = visible(world, asked, Kind::Router, id)?.project.clone();
    let given = asked.json()?;
    let (subnet_id, port_id) = match (given["subnet_id"].as_str(), given["port_id"].as_str()) {
        (Some(subnet), None) => (subnet.to_owned(), None),
        (None, Some(port_id)) => {
            let port = world.store.get(Kind::Port, port_id);
            let port = port.ok_or_else(|| types::of(Kind::Port).missing(port_id))?;
            if !port.text("device_id").is_empty() {
                return Err(ApiError::new(
                    409,
                    "PortInUse",
                    format!(
                        "Unable to complete operation on port {port_id} for network {}. Port already has an attached device {}.",
                        port.text("network_id"),
                        port.text("device_id")
                    ),
                ));
            }
            let subnet = port
                .list("fixed_ips")
                .first()
                .and_then(|ip| ip["subnet_id"].as_str())
                .unwrap_or_default();
            (subnet.to_owned(), Some(port_id.to_owned()))
        }
        _ => {
            return Err(ApiError::new(
                400,
                "BadRequest",
                "Bad router request: Either subnet_id or port_id must be specified.",
            ));
        }
    };
    let subnet = visible(world, asked, Kind::Subnet, &subnet_id)?;
    let (network, gateway) =
        (subnet.text("network_id").to_owned(), subnet.text("gateway_ip").to_owned());
    let twice = ports(world, id)
        .find(|port| port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet_id.as_str()));
    if twice.is_some() {
        return Err(ApiError::new(
            400,
            "BadRequest",
            format!("Bad router request: Router already has a port on subnet {subnet_id}."),
        ));
    }
    let port_id = match port_id {
        Some(port) => port,
        None if gateway.is_empty() => {
            return Err(ApiError::new(
                400,
                "BadRequest",
                "Bad router request: Subnet for router interface must have a gateway IP.",
            ));
        }
        None => make_port(
            world,
            &project,
            json!({"network_id": network, "fixed_ips": [{"subnet_id": subnet_id, "ip_address": gateway}], "device_owner": INTERFACE, "device_id": id}),
        )?,
    };
    if let Some(port) = world.store.get_mut(Kind::Port, &port_id) {
        port.set("device_owner", INTERFACE);
        port.set("device_id", id);
        port.set("status", "ACTIVE");
    }
    touch(world, Kind::Router, id);
    Ok(Answer::ok(interface(id, &project, &network, &subnet_id, &port_id)))
}

/// Answers `PUT …/remove_router_interface`.
pub(super) fn detach(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let project = visible(world, asked, Kind::Router, id)?.project.clone();
    let given = asked.json()?;
    let wanted = (given["subnet_id"].as_str(), given["port_id"].as_str());
    let found = ports(world, id).find(|port| {
        port.text("device_owner") == INTERFACE
            && wanted.1.is_none_or(|wanted| wanted == port.id)
            && wanted.0.is_none_or(|wanted| {
                port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == wanted)
            })
    });
    let port = found.ok_or_else(|| match wanted {
        (Some(subnet), _) => ApiError::new(
            404,
            "RouterInterfaceNotFoundForSubnet",
            format!("Router {id} has no interface on subnet {subnet}"),
        ),
        (None, port) => ApiError::new(
            404,
            "RouterInterfaceNotFound",
            format!("Router {id} does not have an interface with id {}", port.unwrap_or_default()),
        ),
    })?;
    let port = port.clone();
    let subnet =
        port.list("fixed_ips").first().and_then(|ip| ip["subnet_id"].as_str()).unwrap_or_default();
    let network = port.text("network_id");
    let needed = world.store.with_text(Kind::FloatingIp, "router_id", id).find(|ip| {
        let inside = world.store.get(Kind::Port, ip.text("port_id"));
        inside.is_some_and(|inside| inside.text("network_id") == network)
    });
    if needed.is_some() {
        return Err(ApiError::new(
            409,
            "RouterInterfaceInUseByFloatingIP",
            format!(
                "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is required by one or more floating IPs."
            ),
        ));
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

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    let inside = ports(world, id).find(|port| port.text("device_owner") == INTERFACE);
    if inside.is_some() {
        return Err(ApiError::new(409, "RouterInUse", format!("Router {id} still has ports")));
    }
    clear_gateway(world, id)?;
    world.store.remove(Kind::Router, id);
    Ok(())
}

/// The ports of a router.
fn ports<'w>(world: &'w World, id: &str) -> impl Iterator<Item = &'w Object> + use<'w> {
    world.store.with_text(Kind::Port, "device_id", id)
}
