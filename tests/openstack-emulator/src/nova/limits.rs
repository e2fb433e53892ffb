//! Nova's quotas and their usage.

use serde_json::{Value, json};

use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

/// Nova's names of quotas, with their defaults.
const LIMITS: [(&str, i64); 7] = [
    ("instances", 10),
    ("cores", 20),
    ("ram", 51200),
    ("key_pairs", 100),
    ("metadata_items", 128),
    ("server_groups", 10),
    ("server_group_members", 10),
];

fn limit(world: &World, project: &str, name: &str) -> i64 {
    let default = LIMITS.iter().find(|(known, _)| *known == name).map(|(_, default)| *default);
    world.quota(project, name, default.unwrap_or(-1))
}

fn used(world: &World, project: &str, name: &str) -> i64 {
    let usage = world.usage.get(project).copied().unwrap_or_default();
    let count = |kind| i64::try_from(world.store.count(kind, project)).unwrap_or(i64::MAX);
    match name {
        "instances" => count(Kind::Server),
        "cores" => usage.cores,
        "ram" => usage.ram,
        "server_groups" => count(Kind::ServerGroup),
        _ => 0,
    }
}

/// Refuses new servers if they exceed a quota.
pub(super) fn check(
    world: &World,
    asked: &ApiRequest,
    flavor: &Object,
    count: usize,
) -> Result<(), ApiError> {
    let project = &asked.caller.project;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let wanted = [
        ("instances", count),
        ("cores", flavor.number("vcpus") * count),
        ("ram", flavor.number("ram") * count),
    ];
    let over: Vec<(&str, i64, i64, i64)> = wanted
        .into_iter()
        .map(|(name, more)| (name, more, used(world, project, name), limit(world, project, name)))
        .filter(|(_, more, used, limit)| *limit >= 0 && used + more > *limit)
        .collect();
    if over.is_empty() {
        return Ok(());
    }
    let list = |one: fn(&(&str, i64, i64, i64)) -> String| {
        over.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Err(ApiError::forbidden(format!(
        "Quota exceeded for {}: Requested {}, but already used {} of {} {}",
        list(|one| one.0.to_owned()),
        list(|one| one.1.to_string()),
        list(|one| one.2.to_string()),
        list(|one| one.3.to_string()),
        list(|one| one.0.to_owned()),
    )))
}

/// Refuses a resize if the new flavor exceeds a quota.
pub(super) fn check_resize(
    world: &World,
    project: &str,
    now: &Object,
    next: &Object,
) -> Result<(), ApiError> {
    for (name, field) in [("cores", "vcpus"), ("ram", "ram")] {
        let more = next.number(field) - now.number(field);
        let (used, limit) = (used(world, project, name), limit(world, project, name));
        if more > 0 && limit >= 0 && used + more > limit {
            return Err(ApiError::forbidden(format!(
                "Quota exceeded for {name}: Requested {more}, but already used {used} of {limit} {name}"
            )));
        }
    }
    Ok(())
}

/// Adds a server to the usage.
pub(super) fn take(world: &mut World, project: &str, flavor: &Object) {
    let usage = world.usage.entry(project.to_owned()).or_default();
    usage.cores += flavor.number("vcpus");
    usage.ram += flavor.number("ram");
}

/// Subtracts a server from the usage.
pub(super) fn give_back(world: &mut World, server: &Object) {
    let flavor = world.store.get(Kind::Flavor, server.note("flavor"));
    let (cores, ram) =
        flavor.map(|flavor| (flavor.number("vcpus"), flavor.number("ram"))).unwrap_or_default();
    let usage = world.usage.entry(server.project.clone()).or_default();
    usage.cores -= cores;
    usage.ram -= ram;
}

/// Answers `GET /limits`.
pub(super) fn absolute(world: &World, asked: &ApiRequest) -> AnswerResult {
    let own = asked.caller.project.as_str();
    let project = asked
        .query("tenant_id")
        .or_else(|| asked.query("project_id"))
        .filter(|_| asked.caller.is_admin())
        .unwrap_or(own);
    let limit = |name: &str| limit(world, project, name);
    let used = |name: &str| used(world, project, name);
    let mut absolute = json!({
        "maxTotalInstances": limit("instances"), "maxTotalCores": limit("cores"), "maxTotalRAMSize": limit("ram"),
        "maxTotalKeypairs": limit("key_pairs"), "maxServerMeta": limit("metadata_items"), "maxServerGroups": limit("server_groups"),
        "maxServerGroupMembers": limit("server_group_members"), "totalInstancesUsed": used("instances"), "totalCoresUsed": used("cores"),
        "totalRAMUsed": used("ram"), "totalServerGroupsUsed": used("server_groups"),
    });
    if !asked.since(39) {
        absolute["maxImageMeta"] = json!(limit("metadata_items"));
    }
    Ok(Answer::ok(json!({"limits": {"rate": [], "absolute": absolute}})))
}

/// Answers `/os-quota-sets/{project}`.
pub(super) fn quotas(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let Some(project) = path.first().copied() else { return Err(ApiError::unknown_path()) };
    if !asked.sees(project) {
        return Err(ApiError::forbidden(
            "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.",
        ));
    }
    let plain = |world: &World, of: &str| {
        let mut body = json!({"id": project});
        for (name, _) in LIMITS {
            body[name] = json!(limit(world, of, name));
        }
        body
    };
    match (asked.method.as_str(), &path[1..]) {
        ("GET", []) => Ok(Answer::ok(json!({"quota_set": plain(world, project)}))),
        ("GET", ["defaults"]) => Ok(Answer::ok(json!({"quota_set": plain(world, "")}))),
        ("GET", ["detail"]) => {
            let mut body = json!({"id": project});
            for (name, _) in LIMITS {
                body[name] = json!({"limit": limit(world, project, name), "in_use": used(world, project, name), "reserved": 0});
            }
            Ok(Answer::ok(json!({"quota_set": body})))
        }
        ("PUT", []) => {
            let given = asked.wrapped("quota_set")?;
            // Nova checks the body of the request before the rights of its sender.
            let mut limits = Vec::new();
            for (name, value) in given {
                if ["force", "tenant_id"].contains(&name.as_str()) {
                    continue;
                }
                let value = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                let known = LIMITS.iter().any(|(limit, _)| *limit == name);
                let Some(value) = value.filter(|_| known) else {
                    return Err(ApiError::bad(format!(
                        "Invalid input for field/attribute quota_set. Additional properties are not allowed ('{name}' was unexpected)"
                    )));
                };
                limits.push(((project.to_owned(), name), value));
            }
            asked.admin("os_compute_api:os-quota-sets:update")?;
            world.quotas.extend(limits);
            let mut body = plain(world, project);
            if let Some(body) = body.as_object_mut() {
                body.remove("id");
            }
            Ok(Answer::ok(json!({"quota_set": Value::clone(&body)})))
        }
        ("DELETE", []) => {
            asked.admin("os_compute_api:os-quota-sets:delete")?;
            world.quotas.retain(|(of, name), _| {
                of != project || !LIMITS.iter().any(|(limit, _)| limit == name)
            });
            Ok(Answer::empty(202))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
