//! Finds the router that connects a subnet to an external network.

use crate::object::Kind;
use crate::world::World;

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
