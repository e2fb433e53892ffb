//! The networks of Neutron.

use serde_json::{Map, Value};

use super::object::merge;
use super::port::delete as delete_port;
use super::subnet;
use super::types::ADMINS;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::World;

pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    object: Object,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    guard(asked, given)?;
    let id = object.id.clone();
    world.store.insert(Kind::Network, object);
    Ok(id)
}

fn guard(asked: &ApiRequest, given: &Map<String, Value>) -> Result<(), ApiError> {
    let theirs = given
        .iter()
        .find(|(key, value)| ADMINS.contains(&key.as_str()) && **value != Value::Bool(false));
    match theirs {
        Some((key, _)) if !asked.caller.is_admin() => Err(ApiError::forbidden(format!(
            "((rule:create_network and rule:create_network:{key})) is disallowed by policy"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn change(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    guard(asked, given)?;
    merge(world, Kind::Network, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    let ports = world.store.with_text(Kind::Port, "network_id", id);
    let (own, others): (Vec<&Object>, Vec<&Object>) =
        ports.partition(|port| port.text("device_owner") == "network:dhcp");
    if !others.is_empty() {
        let ids: Vec<&str> = others.iter().map(|port| port.id.as_str()).collect();
        return Err(ApiError::new(
            409,
            "NetworkInUse",
            format!(
                "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id(s): {}.",
                ids.join(",")
            ),
        ));
    }
    let own: Vec<String> = own.iter().map(|port| port.id.clone()).collect();
    for port in own {
        delete_port(world, &port);
    }
    for subnet in world.store.ids(Kind::Subnet, "network_id", id) {
        subnet::remove(world, &subnet);
    }
    world.store.remove(Kind::Network, id);
    Ok(())
}
