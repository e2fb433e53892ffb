//! Trusts, by which one user acts for another.

use serde_json::{Value, json};

use super::application_credential::unrestricted;
use super::assignment::{missing, no_links, role, role_document, roles_of, shown};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, short_id};

const PATH: &str = "OS-TRUST/trusts";

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let me = asked.caller.user.as_str();
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let wants = |key: &str| asked.query(key).map(str::to_owned);
            let (trustor, trustee) = (wants("trustor_user_id"), wants("trustee_user_id"));
            let mine = trustor.as_deref() == Some(me) || trustee.as_deref() == Some(me);
            if !mine && !asked.caller.is_admin() {
                return Err(ApiError::forbidden(
                    "You are not authorized to perform the requested action: identity:list_trusts.",
                ));
            }
            let all = world.store.all(Kind::Trust).filter(|trust| {
                trustor.as_deref().is_none_or(|id| id == trust.text("trustor_user_id"))
                    && trustee.as_deref().is_none_or(|id| id == trust.text("trustee_user_id"))
            });
            let all: Vec<Value> = all.map(|trust| shown(asked, PATH, trust)).collect();
            Ok(Answer::ok(json!({"trusts": all, "links": no_links(asked)})))
        }
        ("POST", []) => create(world, asked),
        ("GET" | "DELETE", [id]) => {
            let trust = world.store.get(Kind::Trust, id).filter(|trust| {
                asked.caller.is_admin()
                    || [trust.text("trustor_user_id"), trust.text("trustee_user_id")].contains(&me)
            });
            let trust = trust.ok_or_else(|| missing("trust", id))?;
            if asked.method == http::Method::GET {
                return Ok(Answer::ok(json!({"trust": shown(asked, PATH, trust)})));
            }
            if trust.text("trustor_user_id") != me && !asked.caller.is_admin() {
                return Err(ApiError::forbidden("Only admin or trustor can delete a trust"));
            }
            world.store.remove(Kind::Trust, id);
            Ok(Answer::empty(204))
        }
        ("GET", [id, "roles"]) => {
            let trust = world.store.get(Kind::Trust, id).ok_or_else(|| missing("trust", id))?;
            Ok(Answer::ok(json!({"roles": trust.list("roles"), "links": no_links(asked)})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    unrestricted(asked, "create_trust")?;
    let given = asked.wrapped("trust")?;
    let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let (trustor, trustee) = (text("trustor_user_id"), text("trustee_user_id"));
    if trustor != asked.caller.user {
        return Err(ApiError::forbidden("The authenticated user should match the trustor"));
    }
    world.store.get(Kind::User, trustee).ok_or_else(|| missing("user", trustee))?;
    let project = given.get("project_id").and_then(Value::as_str).unwrap_or_default();
    let mine = roles_of(world, trustor, project);
    let mut roles = Vec::new();
    for wanted in given.get("roles").and_then(Value::as_array).into_iter().flatten() {
        let found = role(world, wanted).ok_or_else(|| missing("role", &wanted.to_string()))?;
        if !mine.contains(&found.id) {
            return Err(missing("role", &found.id));
        }
        roles.push(role_document(world, &found.id));
    }
    if roles.is_empty() {
        return Err(ApiError::forbidden("At least one role should be specified"));
    }
    let body = json!({
        "id": short_id(),
        "trustor_user_id": trustor,
        "trustee_user_id": trustee,
        "project_id": project,
        "impersonation": given.get("impersonation").and_then(Value::as_bool).unwrap_or(false),
        "roles": roles,
        "expires_at": given.get("expires_at"),
        "remaining_uses": given.get("remaining_uses"),
        "redelegation_count": 0,
        "redelegated_trust_id": null,
        "deleted_at": null,
    });
    let id = world.add(Kind::Trust, project, body);
    let trust = world.store.get(Kind::Trust, &id).ok_or_else(ApiError::unknown_path)?;
    Ok(Answer::json(201, json!({"trust": shown(asked, PATH, trust)})))
}
