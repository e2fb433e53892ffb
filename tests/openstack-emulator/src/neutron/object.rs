//! The common part of all objects of Neutron: an owner, timestamps, a revision number, and the callers who may see an object.

use serde_json::{Value, json};

use super::types;
use crate::object::{Fields, Kind, Object};
use crate::request::{ApiRequest, ApiResult};
use crate::world::{World, stamp};

/// The body of a new object of a project, with the given fields.
pub(crate) fn body<'g>(
    kind: Kind,
    project: &str,
    given: impl IntoIterator<Item = (&'g String, &'g Value)>,
) -> Value {
    let mut body = types::of(kind).filled(given);
    let now = stamp();
    body["created_at"] = json!(now);
    body["updated_at"] = json!(now);
    body["revision_number"] = json!(1);
    body["project_id"] = json!(project);
    body["tenant_id"] = json!(project);
    body
}

/// Stores an object with these fields, without any check, and returns its id.
pub(crate) fn add(world: &mut World, kind: Kind, project: &str, given: &Value) -> String {
    let body = body(kind, project, given.as_object().into_iter().flatten());
    world.add(kind, project, body)
}

/// Raises the revision number and updates `updated_at` of an object.
pub(crate) fn touch(world: &mut World, kind: Kind, id: &str) {
    if let Some(object) = world.store.get_mut(kind, id) {
        let revision = object.number("revision_number") + 1;
        object.set("revision_number", revision);
        object.set("updated_at", stamp());
    }
}

/// Changes an object for another service.
pub(crate) fn update(world: &mut World, kind: Kind, id: &str, change: impl FnOnce(&mut Object)) {
    world.store.change(kind, id, change);
    touch(world, kind, id);
}

/// Copies the given fields into an object.
pub(super) fn merge(world: &mut World, kind: Kind, id: &str, given: &Fields) {
    if let Some(object) = world.store.get_mut(kind, id) {
        object.body.extend(given.clone());
    }
}

/// Whether the caller sees an object: objects of the own project, and networks and subnets that are shared or external.
pub(super) fn sees(world: &World, asked: &ApiRequest, kind: Kind, object: &Object) -> bool {
    if asked.sees(&object.project) {
        return true;
    }
    if kind == Kind::Subnet {
        let network = world.store.get(Kind::Network, object.text("network_id"));
        return network.is_some_and(|network| network.is("shared"));
    }
    kind == Kind::Network && (object.is("shared") || object.is("router:external"))
}

/// The object with this id, if the caller sees it.
pub(super) fn visible<'w>(
    world: &'w World,
    asked: &ApiRequest,
    kind: Kind,
    id: &str,
) -> ApiResult<&'w Object> {
    let object = world.store.get(kind, id).filter(|object| sees(world, asked, kind, object));
    object.ok_or_else(|| types::of(kind).missing(id))
}
