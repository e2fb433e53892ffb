//! Fully populated load balancers: one request with all children.

use serde_json::Value;

use super::children::{below as child, make};
use super::references::tie;
use super::{refuse, types};
use crate::object::{Fields, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::world::World;

/// Creates the children in a request. Pools come first, because listeners may refer to them.
pub(super) fn below(
    world: &mut World,
    asked: &ApiRequest,
    balancer: &str,
    given: &Fields,
) -> ApiResult {
    let parent = ("loadbalancer_id", balancer);
    let mut named: Vec<(&str, String)> = Vec::new();
    for one in given.list("pools") {
        if one.text("name").is_empty() {
            return Err(refuse::unnamed_pool());
        }
        named.push((one.text("name"), pool(world, asked, parent, one)?));
    }
    for one in given.list("listeners") {
        let mut fields = child(one, parent.0, balancer);
        let default = fields.remove("default_pool");
        let listener = make(world, asked, types::at("listeners")?, &fields)?;
        let Some(default) = default.filter(|pool| !pool.is_null()) else { continue };
        let is_reference = default.as_object().is_some_and(|pool| pool.len() == 1);
        match named.iter().find(|(name, _)| is_reference && default["name"] == *name) {
            Some((_, id)) => tie(world, &listener, id),
            None if is_reference => return Err(refuse::no_pool(&default["name"])),
            None => drop(pool(world, asked, ("listener_id", &listener), &default)?),
        }
    }
    Ok(())
}

fn pool(
    world: &mut World,
    asked: &ApiRequest,
    (parent, id): (&str, &str),
    given: &Value,
) -> ApiResult<String> {
    let mut fields = child(given, parent, id);
    fields.remove("members");
    fields.remove("healthmonitor");
    let pool = make(world, asked, types::at("pools")?, &fields)?;
    for member in given.list("members") {
        make(world, asked, types::at("members")?, &child(member, "pool_id", &pool))?;
    }
    let monitor = &given["healthmonitor"];
    if !monitor.is_null() {
        make(world, asked, types::at("healthmonitors")?, &child(monitor, "pool_id", &pool))?;
    }
    Ok(pool)
}
