//! Floating IPs.

use serde_json::{Value, json};

use super::address::first;
use super::object::merge;
use super::port::{delete as delete_port, make as make_port};
use super::{refuse, route, types};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::world::{BackgroundTask, Event, World};

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    given: &Fields,
) -> ApiResult<String> {
    let network_id = object.text("floating_network_id");
    let network = world.store.get(Kind::Network, network_id);
    let network = network.ok_or_else(|| types::of(Kind::Network).missing(network_id))?;
    if !network.is("router:external") {
        let why = format!("Network {network_id} is not a valid external network");
        return Err(refuse::bad_floating_ip(why));
    }
    let mut ip = Fields::new();
    if let Some(wanted) = given.text_of("floating_ip_address").filter(|ip| !ip.is_empty()) {
        if !asked.caller.is_admin() {
            let rule = "rule:create_floatingip and rule:create_floatingip:floating_ip_address";
            return Err(refuse::not_allowed(rule));
        }
        ip.insert("ip_address".to_owned(), json!(wanted));
    }
    if let Some(subnet) = given.text_of("subnet_id") {
        ip.insert("subnet_id".to_owned(), json!(subnet));
    }
    let mut port = json!({"network_id": network_id, "device_owner": "network:floatingip", "device_id": object.id, "status": "N/A", "port_security_enabled": false});
    if !ip.is_empty() {
        port["fixed_ips"] = json!([ip]);
    }
    let outside = make_port(world, "", port)?;
    let address = world.store.get(Kind::Port, &outside).map(|port| first(port).0.to_owned());
    object.body.remove("subnet_id");
    object.set("floating_ip_address", address);
    object.keep("port", outside.clone());
    object.set("port_id", Value::Null);
    let id = object.id.clone();
    world.store.insert(Kind::FloatingIp, object);
    if let Some(inside) = given.text_of("port_id").filter(|port| !port.is_empty())
        && let Err(problem) = associate(world, asked, &id, inside, given.get("fixed_ip_address"))
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
) -> ApiResult {
    let floating = world.store.get(Kind::FloatingIp, id);
    let floating = floating.ok_or_else(|| types::of(Kind::FloatingIp).missing(id))?;
    let port = world.seen(Kind::Port, port_id, asked);
    let port = port.ok_or_else(|| types::of(Kind::Port).missing(port_id))?;
    let wanted = fixed.and_then(Value::as_str);
    let mut ips = port.list("fixed_ips").iter();
    let ip = ips.find(|ip| wanted.is_none_or(|wanted| ip["ip_address"] == wanted));
    let Some(ip) = ip else {
        let why =
            format!("Cannot add floating IP to port {port_id} that has no fixed IPv4 addresses");
        return Err(refuse::bad_floating_ip(why));
    };
    let (address, subnet) = (ip.text("ip_address"), ip.text("subnet_id"));
    let outside = floating.text("floating_network_id");
    let is_same = |other: &&Object| other.id != id && other.text("fixed_ip_address") == address;
    let other = world.store.with_text(Kind::FloatingIp, "port_id", port_id).find(is_same);
    if let Some(other) = other {
        let (own, network) =
            (floating.text("floating_ip_address"), other.text("floating_network_id"));
        return Err(refuse::associated(own, id, port_id, address, network));
    }
    let router = route::way_out(world, subnet, outside);
    let router = router.ok_or_else(|| refuse::no_way_out(outside, subnet, port_id))?;
    let details = json!({
        "name": port.text("name"), "network_id": port.text("network_id"), "mac_address": port.text("mac_address"), "admin_state_up": true,
        "status": port.text("status"), "device_id": port.text("device_id"), "device_owner": port.text("device_owner"),
    });
    let address = address.to_owned();
    world.store.change(Kind::FloatingIp, id, |floating| {
        floating.set("port_id", port_id);
        floating.set("fixed_ip_address", address);
        floating.set("router_id", router);
        floating.set("port_details", details);
    });
    match world.settings.times.floating_ip {
        0 => world.store.set(Kind::FloatingIp, id, "status", "ACTIVE"),
        delay => {
            world.later(delay, Event::set(Kind::FloatingIp, id, vec![("status", json!("ACTIVE"))]));
        }
    }
    world.start(BackgroundTask::Reopen);
    Ok(())
}

pub(super) fn change(world: &mut World, asked: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    match given.get("port_id") {
        Some(Value::String(port)) => {
            associate(world, asked, id, port, given.get("fixed_ip_address"))?
        }
        Some(_) => route::part(world, id),
        None => {}
    }
    let mut rest = given.clone();
    rest.retain(|key, _| key != "port_id" && key != "fixed_ip_address");
    merge(world, Kind::FloatingIp, id, &rest);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    if let Some(floating) = world.store.remove(Kind::FloatingIp, id) {
        delete_port(world, floating.note("port"));
    }
    world.start(BackgroundTask::Reopen);
    Ok(())
}
