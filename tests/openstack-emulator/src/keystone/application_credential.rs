//! Application credentials: some of a user's roles in one project, with a secret of their own.

use serde_json::{Value, json};

use super::assignment::{links, missing, no_links, role, role_document, roles_of, shown};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, short_id};

pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    user: &str,
    path: &[&str],
) -> AnswerResult {
    if user != asked.caller.user && !asked.caller.is_admin() {
        return Err(ApiError::forbidden(
            "You are not authorized to perform the requested action: identity:list_application_credentials.",
        ));
    }
    let base = format!("users/{user}/application_credentials");
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let name = asked.query("name");
            let all = world.store.with_text(Kind::ApplicationCredential, "user", user);
            let all = all.filter(|one| name.is_none_or(|name| one.text("name") == name));
            let all: Vec<Value> = all.map(|one| shown(asked, &base, one)).collect();
            Ok(Answer::ok(json!({"application_credentials": all, "links": no_links(asked)})))
        }
        ("POST", []) => create(world, asked, user, &base),
        ("GET", [id]) => {
            let one = world
                .store
                .get(Kind::ApplicationCredential, id)
                .filter(|one| one.note("user") == user);
            let one = one.ok_or_else(|| missing("application credential", id))?;
            Ok(Answer::ok(json!({"application_credential": shown(asked, &base, one)})))
        }
        ("DELETE", [id]) => {
            unrestricted(asked, "delete_application_credential")?;
            let one = world
                .store
                .get(Kind::ApplicationCredential, id)
                .filter(|one| one.note("user") == user);
            one.ok_or_else(|| missing("application credential", id))?;
            world.store.remove(Kind::ApplicationCredential, id);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Refuses tokens that come from a restricted application credential or from a trust.
pub(super) fn unrestricted(asked: &ApiRequest, rule: &str) -> Result<(), ApiError> {
    if asked.caller.restricted {
        return Err(ApiError::forbidden(format!(
            "You are not authorized to perform the requested action: identity:{rule}."
        )));
    }
    Ok(())
}

fn create(world: &mut World, asked: &ApiRequest, user: &str, base: &str) -> AnswerResult {
    unrestricted(asked, "create_application_credential")?;
    if user != asked.caller.user {
        return Err(ApiError::forbidden(
            "You are not authorized to perform the requested action: identity:create_application_credential.",
        ));
    }
    let given = asked.wrapped("application_credential")?;
    let name = given
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| ApiError::bad("'name' is a required property"))?;
    let project = asked.caller.project.clone();
    if world
        .store
        .find(Kind::ApplicationCredential, |one| {
            one.note("user") == user && one.text("name") == name
        })
        .is_some()
    {
        return Err(ApiError::conflict(format!(
            "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}."
        )));
    }
    let mine = roles_of(world, user, &project);
    let roles = match given.get("roles").and_then(Value::as_array) {
        Some(roles) if !roles.is_empty() => {
            let mut ids = Vec::new();
            for given in roles {
                let found = role(world, given).map(|role| role.id.clone());
                let id = found
                    .ok_or_else(|| missing("role", given["name"].as_str().unwrap_or_default()))?;
                if !mine.contains(&id) {
                    return Err(ApiError::bad(format!(
                        "Invalid application credential: Could not find role assignment with role: {id}, user or group: {user}, project, domain, or system: {project}."
                    )));
                }
                ids.push(id);
            }
            ids
        }
        _ => mine,
    };
    let roles: Vec<Value> = roles.iter().map(|id| role_document(world, id)).collect();
    let secret = given
        .get("secret")
        .and_then(Value::as_str)
        .map_or_else(|| format!("{}{}", short_id(), short_id()), str::to_owned);
    let mut body = json!({
        "id": short_id(),
        "name": name,
        "description": given.get("description"),
        "project_id": project,
        "roles": roles,
        "expires_at": given.get("expires_at"),
        "unrestricted": given.get("unrestricted").and_then(Value::as_bool).unwrap_or(false),
        "system": null,
    });
    if let Some(rules) = given.get("access_rules") {
        body["access_rules"] = rules.clone();
    }
    let mut object = world.object(&project, body);
    object.keep("secret", secret.clone());
    world.secrets.push(secret.clone());
    object.keep("user", user);
    let mut answer = object.shown();
    answer["secret"] = json!(secret);
    answer["links"] = links(asked, &format!("{base}/{}", object.id));
    world.store.insert(Kind::ApplicationCredential, object);
    Ok(Answer::json(201, json!({"application_credential": answer})))
}
