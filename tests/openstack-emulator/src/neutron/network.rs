//! The networks of Neutron.

use super::object::merge;
use super::types::ADMINS;
use super::{port, refuse, subnet};
use crate::object::{Fields, Kind, Object};
use crate::request::{ApiRequest, ApiResult};
use crate::world::World;

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    object: Object,
    given: &Fields,
) -> ApiResult<String> {
    guard(asked, given)?;
    let id = object.id.clone();
    world.store.insert(Kind::Network, object);
    Ok(id)
}

/// Refuses fields that only administrators set.
fn guard(asked: &ApiRequest, given: &Fields) -> ApiResult {
    let mut theirs = given.iter().filter(|(_, value)| **value != false);
    match theirs.find(|(key, _)| ADMINS.contains(&key.as_str())) {
        Some((key, _)) if !asked.caller.is_admin() => {
            let rule = format!("(rule:create_network and rule:create_network:{key})");
            Err(refuse::not_allowed(rule))
        }
        _ => Ok(()),
    }
}

pub(super) fn change(world: &mut World, asked: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    guard(asked, given)?;
    merge(world, Kind::Network, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    port::delete_dhcp(world, "network_id", id, |ids| refuse::network_in_use(id, ids.join(",")))?;
    for subnet in world.store.ids(Kind::Subnet, "network_id", id) {
        subnet::remove(world, &subnet);
    }
    world.store.remove(Kind::Network, id);
    Ok(())
}
