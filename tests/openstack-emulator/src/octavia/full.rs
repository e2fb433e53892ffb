//! Fully populated load balancers: one request with all children.

use serde_json::{Map, Value, json};

use super::children::make;
use super::references::tie;
use super::types;
use crate::problem::ApiError;
use crate::request::ApiRequest;
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
        let listener = make(world, asked, types::at("listeners")?, &fields)?;
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
    let pool = make(world, asked, types::at("pools")?, &fields)?;
    for member in members.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let mut fields = member.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, types::at("members")?, &fields)?;
    }
    if let Some(monitor) = monitor {
        let mut fields = monitor.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, types::at("healthmonitors")?, &fields)?;
    }
    Ok(pool)
}
