//! The roles of users, and how Keystone shows objects.

use serde_json::{Value, json};

use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::World;

/// Stands for the whole cloud where the id of a project is expected.
pub(crate) const SYSTEM: &str = "system";

/// Keystone's error for an unknown id.
pub(super) fn missing(what: &str, id: &str) -> ApiError {
    ApiError::missing(format!("Could not find {what}: {id}."))
}

pub(super) fn links(asked: &ApiRequest, path: &str) -> Value {
    json!({"self": format!("{}/v3/{path}", asked.root())})
}

pub(super) fn no_links(asked: &ApiRequest) -> Value {
    json!({"self": format!("{}{}", asked.base, asked.path), "previous": null, "next": null})
}

/// An object with a link to itself.
pub(super) fn shown(asked: &ApiRequest, path: &str, object: &Object) -> Value {
    let mut body = object.shown();
    body["links"] = links(asked, &format!("{path}/{}", object.id));
    body
}

/// A role by id or name.
pub(super) fn role<'w>(world: &'w World, given: &Value) -> Option<&'w Object> {
    let named = |object: &Object| {
        given["id"].as_str().is_some_and(|id| id == object.id)
            || given["name"].as_str().is_some_and(|name| name == object.text("name"))
    };
    world.store.find(Kind::Role, named)
}

/// The ids of a user's roles in a project.
pub(super) fn roles_of(world: &World, user: &str, project: &str) -> Vec<String> {
    let user = world.store.get(Kind::User, user);
    let roles = user.and_then(|user| user.hidden.get("roles")?.get(project)?.as_array().cloned());
    roles.unwrap_or_default().iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

/// Grants a user a role in a project.
pub(crate) fn grant(world: &mut World, user: &str, project: &str, role: &str) {
    if let Some(user) = world.store.get_mut(Kind::User, user) {
        let mut roles = user.hidden.get("roles").cloned().unwrap_or_else(|| json!({}));
        let mut mine = roles[project].as_array().cloned().unwrap_or_default();
        if !mine.iter().any(|id| id == role) {
            mine.push(json!(role));
        }
        roles[project] = Value::Array(mine);
        user.keep("roles", roles);
    }
}

/// Revokes a role, together with the tokens and application credentials that depend on it.
pub(super) fn revoke(world: &mut World, user: &str, project: &str, role: &str) {
    if let Some(user) = world.store.get_mut(Kind::User, user) {
        let mut roles = user.hidden.get("roles").cloned().unwrap_or_else(|| json!({}));
        if let Some(mine) = roles[project].as_array_mut() {
            mine.retain(|id| id != role);
        }
        user.keep("roles", roles);
    }
    world.tokens.retain(|_, token| token.user != user || token.project != project);
    let resting = world.store.with_text(Kind::ApplicationCredential, "user", user);
    let resting = resting.filter(|one| one.project == project).map(|one| one.id.clone());
    for id in resting.collect::<Vec<_>>() {
        world.store.remove(Kind::ApplicationCredential, &id);
    }
}

/// The id and name of a role.
pub(super) fn role_document(world: &World, id: &str) -> Value {
    let name = world.store.get(Kind::Role, id).map(|role| role.text("name"));
    json!({"id": id, "name": name})
}
