//! Keystone v3: users, their roles, and the catalog of services.

mod application_credential;
mod catalogue;
mod directory;
mod token;
mod trust;

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::World;

use catalogue::Part;
pub(crate) use catalogue::{plant as plant_catalogue, register};
pub(crate) use token::{Token, caller, issue};

/// Answers requests that have a token.
pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    if !asked.body.is_empty() && !asked.json()?.is_object() {
        return Err(ApiError::bad("Expecting to find valid JSON in request body."));
    }
    match (asked.method.as_str(), path) {
        (_, ["auth", "tokens"]) => token::answer(world, asked),
        ("GET", ["auth", "catalog"]) => {
            let catalog =
                catalogue::catalog(world, asked, &asked.caller.user, &asked.caller.project);
            Ok(Answer::ok(
                json!({"catalog": catalog, "links": {"self": format!("{}/v3/auth/catalog", asked.root())}}),
            ))
        }
        ("GET", ["auth", "projects"] | ["users", _, "projects"]) => {
            directory::own_projects(world, asked)
        }
        (_, ["users", user, "application_credentials", rest @ ..]) => {
            application_credential::answer(world, asked, user, rest)
        }
        ("GET", ["users", _, "access_rules"]) => {
            Ok(Answer::ok(json!({"access_rules": [], "links": no_links(asked)})))
        }
        (_, ["OS-TRUST", "trusts", rest @ ..]) => trust::answer(world, asked, rest),
        (_, [first, rest @ ..]) => match Part::at(first) {
            Some(part) => catalogue::answer(world, asked, part, rest),
            None => directory::answer(world, asked, path),
        },
        (_, []) => Err(ApiError::unknown_path()),
    }
}

/// Stands for the whole cloud where the id of a project is expected.
pub(crate) const SYSTEM: &str = "system";

/// Keystone's error for an unknown id.
fn missing(what: &str, id: &str) -> ApiError {
    ApiError::missing(format!("Could not find {what}: {id}."))
}

fn links(asked: &ApiRequest, path: &str) -> Value {
    json!({"self": format!("{}/v3/{path}", asked.root())})
}

fn no_links(asked: &ApiRequest) -> Value {
    json!({"self": format!("{}{}", asked.base, asked.path), "previous": null, "next": null})
}

/// An object with a link to itself.
fn shown(asked: &ApiRequest, path: &str, object: &Object) -> Value {
    let mut body = object.shown();
    body["links"] = links(asked, &format!("{path}/{}", object.id));
    body
}

/// A role by id or name.
fn role<'w>(world: &'w World, given: &Value) -> Option<&'w Object> {
    let named = |object: &Object| {
        given["id"].as_str().is_some_and(|id| id == object.id)
            || given["name"].as_str().is_some_and(|name| name == object.text("name"))
    };
    world.store.find(Kind::Role, named)
}

/// The ids of a user's roles in a project.
fn roles_of(world: &World, user: &str, project: &str) -> Vec<String> {
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
fn revoke(world: &mut World, user: &str, project: &str, role: &str) {
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
fn role_document(world: &World, id: &str) -> Value {
    let name = world.store.get(Kind::Role, id).map(|role| role.text("name"));
    json!({"id": id, "name": name})
}
