//! The server groups of Nova.

use serde_json::{Value, json};

use super::limits::is_over;
use super::refuse;
use super::types::SERVER_GROUP;
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::world::World;

const POLICIES: [&str; 4] = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"];

pub(super) fn create(world: &mut World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    let project = &asked.caller.project;
    let field = if asked.since(64) { "policy" } else { "policies" };
    let policy = given.field(field);
    let policy = policy.get(0).unwrap_or(policy).as_str().unwrap_or_default();
    if !POLICIES.contains(&policy) || (policy.starts_with("soft-") && !asked.since(15)) {
        return Err(refuse::bad_policy(field, policy, format!("{POLICIES:?}")));
    }
    if is_over(world, project, "server_groups", world.store.count(Kind::ServerGroup, project), 1) {
        return Err(refuse::too_many_groups());
    }
    let mut body = SERVER_GROUP.new_body(given);
    body["project_id"] = json!(project);
    body["user_id"] = json!(asked.caller.user);
    body["policy"] = json!(policy);
    body["policies"] = json!([policy]);
    let rules = given.field("rules");
    if rules.is_object() && policy != "anti-affinity" {
        return Err(refuse::rules_without_anti_affinity());
    }
    if let Some(most) = rules.number_of("max_server_per_host") {
        body["rules"] = json!({"max_server_per_host": most});
    }
    Ok(world.add(Kind::ServerGroup, project, body))
}

/// Refuses more members than the quota allows.
pub(super) fn check_limit(world: &World, asked: &ApiRequest, id: &str, more: usize) -> ApiResult {
    let group = world.store.get(Kind::ServerGroup, id);
    let members = group.map_or(0, |group| group.list("members").len());
    if is_over(world, &asked.caller.project, "server_group_members", members, more) {
        return Err(refuse::too_many_in_group());
    }
    Ok(())
}

pub(super) fn join(world: &mut World, id: &str, server: &str) {
    world.store.change(Kind::ServerGroup, id, |group| group.body.push_to("members", server));
}

/// Removes a deleted server from its group.
pub(super) fn leave(world: &mut World, server: &Object) {
    let is_gone = |member: &Value| *member == server.id.as_str();
    let group = server.note("group");
    world.store.change(Kind::ServerGroup, group, |it| it.body.drop_from("members", is_gone));
}
