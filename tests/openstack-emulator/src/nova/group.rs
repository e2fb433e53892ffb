//! The server groups of Nova.

use serde_json::{Value, json};

use super::limits::is_over;
use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

const POLICIES: [&str; 4] = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"];

fn shown(asked: &ApiRequest, group: &Object) -> Value {
    let policy = group.note("policy");
    let mut body =
        json!({"id": group.id, "name": group.text("name"), "members": group.list("members")});
    if asked.since(13) {
        body["project_id"] = json!(group.project);
        body["user_id"] = json!(group.note("user"));
    }
    if asked.since(64) {
        body["policy"] = json!(policy);
        body["rules"] = group.hidden.get("rules").cloned().unwrap_or_else(|| json!({}));
    } else {
        body["policies"] = json!([policy]);
        body["metadata"] = json!({});
    }
    body
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let missing = |id: &str| ApiError::missing(format!("Instance group {id} could not be found."));
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all = asked.caller.is_admin() && asked.query("all_projects").is_some();
            let own = (!all).then(|| vec![(PROJECT, asked.caller.project.as_str())]);
            let groups = world.store.narrowed(Kind::ServerGroup, &Vec::from_iter(own)).into_iter();
            let mine = groups.filter(|group| {
                (all || group.project == asked.caller.project)
                    && world.listed(Kind::ServerGroup, group)
            });
            let limit = asked
                .query("limit")
                .and_then(|text| text.parse().ok())
                .unwrap_or(world.settings.page_limit);
            let offset = asked.query("offset").and_then(|text| text.parse().ok()).unwrap_or(0);
            let rows: Vec<Value> =
                mine.skip(offset).take(limit).map(|group| shown(asked, group)).collect();
            Ok(Answer::ok(json!({"server_groups": rows})))
        }
        ("POST", []) => create(world, asked),
        ("GET", [id]) => {
            let group = world.seen(Kind::ServerGroup, id, asked).ok_or_else(|| missing(id))?;
            Ok(Answer::ok(json!({"server_group": shown(asked, group)})))
        }
        ("DELETE", [id]) => {
            world.seen(Kind::ServerGroup, id, asked).ok_or_else(|| missing(id))?;
            world.store.remove(Kind::ServerGroup, id);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.wrapped("server_group")?;
    let project = &asked.caller.project;
    let field = if asked.since(64) { "policy" } else { "policies" };
    let policy = given
        .get(field)
        .map(|policy| if policy.is_array() { policy[0].clone() } else { policy.clone() });
    let policy = policy.as_ref().and_then(Value::as_str).unwrap_or_default();
    if !POLICIES.contains(&policy) || (policy.starts_with("soft-") && !asked.since(15)) {
        return Err(ApiError::bad(format!(
            "Invalid input for field/attribute {field}. Value: {policy}. '{policy}' is not one of {POLICIES:?}"
        )));
    }
    if is_over(world, project, "server_groups", world.store.count(Kind::ServerGroup, project), 1) {
        return Err(ApiError::forbidden("Quota exceeded, too many server groups."));
    }
    let mut group = world.object(project, json!({"name": given.get("name"), "members": []}));
    group.keep("policy", policy);
    group.keep("user", asked.caller.user.clone());
    if let Some(rules) = given.get("rules").and_then(Value::as_object) {
        if policy != "anti-affinity" {
            return Err(ApiError::bad(
                "Invalid input for field/attribute rules. Only anti-affinity policy supports rules.",
            ));
        }
        let most = rules
            .get("max_server_per_host")
            .and_then(|most| most.as_i64().or_else(|| most.as_str()?.parse().ok()));
        if let Some(most) = most {
            group.keep("max_server_per_host", most);
            group.keep("rules", json!({"max_server_per_host": most}));
        }
    }
    let body = shown(asked, &group);
    world.store.insert(Kind::ServerGroup, group);
    Ok(Answer::ok(json!({"server_group": body})))
}

/// Refuses more members than the quota allows.
pub(super) fn check_limit(
    world: &World,
    asked: &ApiRequest,
    id: &str,
    more: usize,
) -> Result<(), ApiError> {
    let members = world
        .store
        .get(Kind::ServerGroup, id)
        .map(|group| group.list("members").len())
        .unwrap_or_default();
    if is_over(world, &asked.caller.project, "server_group_members", members, more) {
        return Err(ApiError::forbidden("Quota exceeded, too many servers in group"));
    }
    Ok(())
}

/// Adds a server to its group.
pub(super) fn join(world: &mut World, id: &str, server: &str) {
    if let Some(group) = world.store.get_mut(Kind::ServerGroup, id) {
        let mut members = group.list("members").to_vec();
        members.push(json!(server));
        group.set("members", members);
    }
}

/// Removes a deleted server from its group.
pub(super) fn leave(world: &mut World, server: &Object) {
    if let Some(group) = world.store.get_mut(Kind::ServerGroup, server.note("group")) {
        let left: Vec<Value> = group
            .list("members")
            .iter()
            .filter(|member| **member != server.id.as_str())
            .cloned()
            .collect();
        group.set("members", left);
    }
}
