//! Fully populated load balancers: one request with all children.

use serde_json::{Map, Value, json};

use super::children::make;
use super::sort::ResourceType;
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::store::{Kind, Object};
use crate::world::World;

/// Creates the children in a request. Pools come first, because listeners may refer to them.
pub(super) fn below(
    world: &mut World,
    asked: &ApiRequest,
    balancer: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let mut named: Vec<(String, String)> = Vec::new();
    for one in given.get("pools").and_then(Value::as_array).into_iter().flatten() {
        let name = one["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(ApiError::bad(
                "Validation failure: Pools must be named when they are given beside listeners.",
            ));
        }
        let id = pool(world, asked, balancer, None, one)?;
        named.push((name, id));
    }
    for one in given.get("listeners").and_then(Value::as_array).into_iter().flatten() {
        let mut fields = one.as_object().cloned().unwrap_or_default();
        let default = fields.remove("default_pool");
        fields.insert("loadbalancer_id".into(), json!(balancer));
        let listener = make(world, asked, ResourceType::of("listeners")?, fields)?;
        let Some(default) = default.filter(|pool| !pool.is_null()) else { continue };
        let reference = default.as_object().is_some_and(|pool| pool.len() == 1);
        let known = named.iter().find(|(name, _)| reference && default["name"] == name.as_str());
        match known {
            Some((_, id)) => tie(world, &listener, id),
            None if reference => {
                return Err(ApiError::bad(format!(
                    "Validation failure: Pool {} is not among the pools.",
                    default["name"]
                )));
            }
            None => {
                pool(world, asked, balancer, Some(&listener), &default)?;
            }
        }
    }
    Ok(())
}

fn pool(
    world: &mut World,
    asked: &ApiRequest,
    balancer: &str,
    listener: Option<&str>,
    given: &Value,
) -> Result<String, ApiError> {
    let mut fields = given.as_object().cloned().unwrap_or_default();
    let members = fields.remove("members");
    let monitor = fields.remove("healthmonitor").filter(|monitor| !monitor.is_null());
    match listener {
        Some(listener) => fields.insert("listener_id".into(), json!(listener)),
        None => fields.insert("loadbalancer_id".into(), json!(balancer)),
    };
    let pool = make(world, asked, ResourceType::of("pools")?, fields)?;
    for member in members.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let mut fields = member.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, ResourceType::of("members")?, fields)?;
    }
    if let Some(monitor) = monitor {
        let mut fields = monitor.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, ResourceType::of("healthmonitors")?, fields)?;
    }
    Ok(pool)
}

/// Makes a pool the default pool of a listener.
pub(super) fn tie(world: &mut World, listener: &str, pool: &str) {
    if let Some(listener) = world.store.get_mut(Kind::Listener, listener) {
        listener.set("default_pool_id", pool);
    }
    if let Some(pool) = world.store.get_mut(Kind::Pool, pool) {
        let mut listeners = pool.list("listeners").to_vec();
        listeners.push(json!({"id": listener}));
        pool.set("listeners", listeners);
    }
}

/// A load balancer with all children, as the answer to a create shows it.
pub(super) fn shown(world: &World, id: &str) -> Value {
    let Some(balancer) = world.store.get(Kind::LoadBalancer, id) else { return Value::Null };
    let of = |kind: Kind| world.store.with_text(kind, "balancer", id);
    let pool = |pool: &Object| {
        let mut body = pool.shown();
        let members =
            of(Kind::Member).filter(|member| member.note("pool") == pool.id).map(Object::shown);
        body["members"] = json!(members.collect::<Vec<_>>());
        let monitor = of(Kind::HealthMonitor)
            .find(|monitor| monitor.note("pool") == pool.id)
            .map(Object::shown);
        body["healthmonitor"] = json!(monitor);
        body
    };
    let pools: Vec<Value> = of(Kind::Pool).map(pool).collect();
    let listeners = of(Kind::Listener).map(|listener| {
        let mut body = listener.shown();
        let default = pools.iter().find(|pool| pool["id"] == listener.text("default_pool_id"));
        body["default_pool"] = json!(default);
        body
    });
    let mut body = balancer.shown();
    body["listeners"] = json!(listeners.collect::<Vec<_>>());
    body["pools"] = json!(pools);
    body
}
