//! The way of a floating IP to its port: the router between their networks, and the end of the association.

use serde_json::Value;

use crate::object::Kind;
use crate::world::{BackgroundTask, World};

/// The device owner of a router's port in a subnet.
pub(super) const INTERFACE: &str = "network:router_interface";

/// The router that connects a subnet to an external network.
pub(super) fn way_out(world: &World, subnet: &str, outside: &str) -> Option<String> {
    // Searches by subnet and device owner, because a subnet may have many ports and a cloud many router interfaces.
    let said = [vec![("fixed_ips", subnet)], vec![("device_owner", INTERFACE)]];
    let interfaces = world.store.narrowed(Kind::Port, &said).into_iter();
    let mut interfaces = interfaces.filter(|port| {
        port.text("device_owner") == INTERFACE
            && port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet)
    });
    let found = interfaces.find(|port| {
        let router = world.store.get(Kind::Router, port.text("device_id"));
        router.is_some_and(|router| {
            router
                .body
                .get("external_gateway_info")
                .is_some_and(|info| info["network_id"] == outside)
        })
    })?;
    Some(found.text("device_id").to_owned())
}

/// Disassociates a floating IP from its port.
pub(super) fn part(world: &mut World, id: &str) {
    if let Some(floating) = world.store.get_mut(Kind::FloatingIp, id) {
        for field in ["port_id", "fixed_ip_address", "router_id", "port_details"] {
            floating.set(field, Value::Null);
        }
        floating.set("status", "DOWN");
    }
    world.start(BackgroundTask::Reopen);
}

/// Disassociates all floating IPs from a port that was deleted.
pub(super) fn leave(world: &mut World, port: &str) {
    for id in world.store.ids(Kind::FloatingIp, "port_id", port) {
        part(world, &id);
    }
}
