//! Ends associations of floating IPs with ports.

use serde_json::Value;

use crate::object::Kind;
use crate::world::{BackgroundTask, World};

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
