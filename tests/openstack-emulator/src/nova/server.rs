//! The servers of callers.

use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::World;

/// A server of the caller's project.
pub(super) fn server<'w>(
    world: &'w World,
    asked: &ApiRequest,
    id: &str,
) -> Result<&'w Object, ApiError> {
    let server = world.seen(Kind::Server, id, asked);
    server.ok_or_else(|| ApiError::missing(format!("Instance {id} could not be found.")))
}

/// The ids of a server's ports.
pub(super) fn ports(world: &World, id: &str) -> Vec<String> {
    let server = world.store.get(Kind::Server, id);
    let ports = server.and_then(|server| server.hidden.get("ports")?.as_array());
    ports.into_iter().flatten().filter_map(|port| port.as_str().map(str::to_owned)).collect()
}
