//! The roles of users, and how Keystone shows objects.

use serde_json::{Value, json};

use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::request::ApiRequest;
use crate::world::World;

/// Stands for the whole cloud where the id of a project is expected.
pub(crate) const SYSTEM: &str = "system";

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

pub(super) fn roles_of(world: &World, user: &str, project: &str) -> Vec<String> {
    let roles = world.store.get(Kind::User, user).map(|user| user.hidden.field("roles"));
    roles.map(|it| it.texts(project).map(str::to_owned).collect()).unwrap_or_default()
}

pub(crate) fn grant(world: &mut World, user: &str, project: &str, role: &str) {
    change_roles(world, user, |roles| {
        if !roles.lists(project, role) {
            roles.push_to(project, role);
        }
    });
}

fn change_roles(world: &mut World, user: &str, change: impl FnOnce(&mut Fields)) {
    world.store.change(Kind::User, user, |user| {
        let mut roles = user.hidden.field("roles").as_object().cloned().unwrap_or_default();
        change(&mut roles);
        user.keep("roles", roles);
    });
}

/// Revokes a role, together with the tokens and application credentials that depend on it.
pub(super) fn revoke(world: &mut World, user: &str, project: &str, role: &str) {
    change_roles(world, user, |roles| roles.drop_from(project, |id| id == role));
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
