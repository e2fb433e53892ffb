//! Floating IPs.

use serde_json::{Map, Value, json};

use super::address::first;
use super::association::part;
use super::object::merge;
use super::port::{delete as delete_port, make as make_port};
use super::{route, types};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::{BackgroundTask, Event, World};

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    let network_id = object.text("floating_network_id").to_owned();
    let network = world.store.get(Kind::Network, &network_id);
    let network = network.ok_or_else(|| types::of(Kind::Network).missing(&network_id))?;
    if !network.is("router:external") {
        return Err(ApiError::new(
            400,
            "BadRequest",
            format!(
                "Bad floatingip request: Network {network_id} is not a valid external network."
            ),
        ));
    }
    let wanted = object.text("floating_ip_address").to_owned();
    if !wanted.is_empty() && !asked.caller.is_admin() {
        return Err(ApiError::forbidden(
            "(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy",
        ));
    }
    let mut port = json!({"network_id": network_id, "device_owner": "network:floatingip", "device_id": object.id, "status": "N/A", "port_security_enabled": false});
    let mut ip = json!({});
    if !wanted.is_empty() {
        ip["ip_address"] = json!(wanted);
    }
    if let Some(subnet) = given.get("subnet_id").filter(|subnet| subnet.is_string()) {
        ip["subnet_id"] = subnet.clone();
    }
    if ip.as_object().is_some_and(|ip| !ip.is_empty()) {
        port["fixed_ips"] = json!([ip]);
    }
    let outside = make_port(world, "", port)?;
    let address = world
        .store
        .get(Kind::Port, &outside)
        .map(|port| first(port).to_owned())
        .unwrap_or_default();
    object.body.remove("subnet_id");
    object.set("floating_ip_address", address);
    object.keep("port", outside.clone());
    let id = object.id.clone();
    let inside = object.text("port_id").to_owned();
    object.set("port_id", Value::Null);
    world.store.insert(Kind::FloatingIp, object);
    if !inside.is_empty()
        && let Err(problem) = associate(world, asked, &id, &inside, given.get("fixed_ip_address"))
    {
        world.store.remove(Kind::FloatingIp, &id);
        delete_port(world, &outside);
        return Err(problem);
    }
    Ok(id)
}

fn associate(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    port_id: &str,
    fixed: Option<&Value>,
) -> Result<(), ApiError> {
    let floating = world.store.get(Kind::FloatingIp, id).cloned();
    let floating = floating.ok_or_else(|| types::of(Kind::FloatingIp).missing(id))?;
    let port =
        world.store.get(Kind::Port, port_id).filter(|port| asked.sees(&port.project)).cloned();
    let port = port.ok_or_else(|| types::of(Kind::Port).missing(port_id))?;
    let wanted = fixed.and_then(Value::as_str);
    let ip = port
        .list("fixed_ips")
        .iter()
        .find(|ip| wanted.is_none_or(|wanted| ip["ip_address"] == wanted));
    let ip = ip.ok_or_else(|| ApiError::new(400, "BadRequest", format!("Bad floatingip request: Cannot add floating IP to port {port_id} that has no fixed IPv4 addresses.")))?;
    let (address, subnet) = (
        ip["ip_address"].as_str().unwrap_or_default(),
        ip["subnet_id"].as_str().unwrap_or_default(),
    );
    let other = world
        .store
        .with_text(Kind::FloatingIp, "port_id", port_id)
        .find(|other| other.id != id && other.text("fixed_ip_address") == address);
    if let Some(other) = other {
        return Err(ApiError::new(
            409,
            "FloatingIPPortAlreadyAssociated",
            format!(
                "Cannot associate floating IP {} ({id}) with port {port_id} using fixed IP {address}, as that fixed IP already has a floating IP on external network {}.",
                floating.text("floating_ip_address"),
                other.text("floating_network_id")
            ),
        ));
    }
    let outside = floating.text("floating_network_id");
    let router = route::way_out(world, subnet, outside).ok_or_else(|| {
        ApiError::new(404, "ExternalGatewayForFloatingIPNotFound", format!("External network {outside} is not reachable from subnet {subnet}. Therefore, cannot associate Port {port_id} with a Floating IP."))
    })?;
    let details = json!({
        "name": port.text("name"), "network_id": port.text("network_id"), "mac_address": port.text("mac_address"), "admin_state_up": true,
        "status": port.text("status"), "device_id": port.text("device_id"), "device_owner": port.text("device_owner"),
    });
    if let Some(floating) = world.store.get_mut(Kind::FloatingIp, id) {
        floating.set("port_id", port_id);
        floating.set("fixed_ip_address", address);
        floating.set("router_id", router);
        floating.set("port_details", details);
    }
    match world.settings.times.floating_ip {
        0 => merge(
            world,
            Kind::FloatingIp,
            id,
            &Map::from_iter([("status".to_owned(), json!("ACTIVE"))]),
        ),
        delay => {
            world.later(delay, Event::set(Kind::FloatingIp, id, vec![("status", json!("ACTIVE"))]));
        }
    }
    world.start(BackgroundTask::Reopen);
    Ok(())
}

pub(super) fn change(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    match given.get("port_id") {
        Some(Value::String(port)) => {
            associate(world, asked, id, port, given.get("fixed_ip_address"))?
        }
        Some(_) => part(world, id),
        None => {}
    }
    let rest: Map<String, Value> = given
        .iter()
        .filter(|(key, _)| key.as_str() != "port_id" && key.as_str() != "fixed_ip_address")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    merge(world, Kind::FloatingIp, id, &rest);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    if let Some(floating) = world.store.remove(Kind::FloatingIp, id) {
        delete_port(world, floating.note("port"));
    }
    world.start(BackgroundTask::Reopen);
    Ok(())
}
