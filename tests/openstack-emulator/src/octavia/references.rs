//! The lists by which load balancers, listeners, pools, members and monitors refer to each other.

use serde_json::{Value, json};

use super::types::TYPES;
use crate::object::{ChangeLists, Kind, Object};
use crate::world::World;

/// The children of a load balancer, the lowest types first.
pub(super) fn below(world: &World, balancer: &str) -> Vec<(Kind, String)> {
    let kinds = TYPES[1..].iter().rev().map(|of| of.kind);
    let ids = |kind| world.store.ids(kind, "balancer", balancer).into_iter();
    kinds.flat_map(|kind| ids(kind).map(move |id| (kind, id))).collect()
}

/// Adds a new child to the list of its parent.
pub(super) fn put_in(world: &mut World, path: &str, balancer: &str, pool: &str, id: &str) {
    match path {
        "listeners" | "pools" => refer(world, Kind::LoadBalancer, balancer, path, id),
        "members" => refer(world, Kind::Pool, pool, path, id),
        _ => world.store.set(Kind::Pool, pool, "healthmonitor_id", id),
    }
}

fn refer(world: &mut World, kind: Kind, parent: &str, field: &str, child: &str) {
    world.store.change(kind, parent, |parent| parent.body.push_to(field, json!({"id": child})));
}

fn forget(world: &mut World, kind: Kind, parent: &str, field: &str, child: &str) {
    let is_child = |one: &Value| one["id"] == child;
    world.store.change(kind, parent, |parent| parent.body.drop_from(field, is_child));
}

/// Makes a pool the default pool of a listener.
pub(super) fn tie(world: &mut World, listener: &str, pool: &str) {
    world.store.set(Kind::Listener, listener, "default_pool_id", pool);
    refer(world, Kind::Pool, pool, "listeners", listener);
}

/// Removes a child and all references to it.
pub(super) fn take_out(world: &mut World, kind: Kind, id: &str) {
    let Some(object) = world.store.remove(kind, id) else { return };
    let (balancer, pool) = (object.note("balancer"), object.note("pool"));
    match TYPES.iter().find(|of| of.kind == kind).map_or("", |of| of.path) {
        "listeners" => {
            forget(world, Kind::LoadBalancer, balancer, "listeners", id);
            forget(world, Kind::Pool, object.text("default_pool_id"), "listeners", id);
        }
        "pools" => {
            forget(world, Kind::LoadBalancer, balancer, "pools", id);
            for listener in world.store.ids(Kind::Listener, "default_pool_id", id) {
                world.store.set(Kind::Listener, &listener, "default_pool_id", Value::Null);
            }
        }
        "members" => forget(world, Kind::Pool, pool, "members", id),
        _ => world.store.set(Kind::Pool, pool, "healthmonitor_id", Value::Null),
    }
}

/// A load balancer with all its children, each as `row` shows it. A brief tree is the one of `GET /loadbalancers/{id}/status`.
pub(super) fn tree(
    world: &World,
    balancer: &Object,
    row: fn(&Object) -> Value,
    is_brief: bool,
) -> Value {
    let of = |kind: Kind| world.store.with_text(kind, "balancer", &balancer.id);
    let pool = |pool: &Object| {
        let mut body = row(pool);
        let members = of(Kind::Member).filter(|member| member.note("pool") == pool.id).map(row);
        body["members"] = json!(members.collect::<Vec<_>>());
        let monitor = of(Kind::HealthMonitor).find(|monitor| monitor.note("pool") == pool.id);
        match (is_brief, monitor.map(row)) {
            (true, None) => {}
            (true, monitor) => body["health_monitor"] = json!(monitor),
            (false, monitor) => body["healthmonitor"] = json!(monitor),
        }
        body
    };
    let pools: Vec<Value> = of(Kind::Pool).map(pool).collect();
    let listeners = of(Kind::Listener).map(|listener| {
        let mut body = row(listener);
        let default = pools.iter().find(|pool| pool["id"] == listener.text("default_pool_id"));
        match is_brief {
            true => body["pools"] = json!(default.into_iter().collect::<Vec<_>>()),
            false => body["default_pool"] = json!(default),
        }
        body
    });
    let mut body = row(balancer);
    body["listeners"] = json!(listeners.collect::<Vec<_>>());
    if !is_brief {
        body["pools"] = json!(pools);
    }
    body
}
