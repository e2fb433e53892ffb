//! Nova's quotas and their usage.

use serde_json::{Value, json};

use super::refuse;
use crate::object::{Kind, Object};
use crate::quota::{Exceeded, Quotas};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;

const QUOTAS: Quotas = Quotas(&[
    ("instances", Some(Kind::Server), 10),
    ("cores", None, 20),
    ("ram", None, 51200),
    ("key_pairs", None, 100),
    ("metadata_items", None, 128),
    ("server_groups", Some(Kind::ServerGroup), 10),
    ("server_group_members", None, 10),
]);

fn used(world: &World, project: &str, name: &str) -> i64 {
    let usage = world.records.usage.get(project).copied().unwrap_or_default();
    match name {
        "cores" => usage.cores,
        "ram" => usage.ram,
        name => QUOTAS.count(world, project, name),
    }
}

/// Whether `more` in addition to `used` exceeds a quota of a project.
pub(super) fn is_over(
    world: &World,
    project: &str,
    name: &'static str,
    used: usize,
    more: usize,
) -> bool {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    QUOTAS.exceeded_by(world, project, name, number(used), number(more)).is_some()
}

/// Refuses new servers if they exceed a quota.
pub(super) fn check(world: &World, asked: &ApiRequest, flavor: &Object, count: usize) -> ApiResult {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let (cores, ram) = (flavor.number("vcpus") * count, flavor.number("ram") * count);
    refuse_over(
        world,
        &asked.caller.project,
        [("instances", count), ("cores", cores), ("ram", ram)],
    )
}

/// Refuses a resize if the new flavor exceeds a quota.
pub(super) fn check_resize(world: &World, project: &str, now: &Object, next: &Object) -> ApiResult {
    for (name, field) in [("cores", "vcpus"), ("ram", "ram")] {
        let more = next.number(field) - now.number(field);
        if more > 0 {
            refuse_over(world, project, [(name, more)])?;
        }
    }
    Ok(())
}

/// Refuses a request that exceeds quotas. The error names all of them.
fn refuse_over<const N: usize>(
    world: &World,
    project: &str,
    wanted: [(&'static str, i64); N],
) -> ApiResult {
    let over = wanted.into_iter().filter_map(|(name, more)| {
        let used = used(world, project, name);
        Some((more, QUOTAS.exceeded_by(world, project, name, used, more)?))
    });
    let over: Vec<(i64, Exceeded)> = over.collect();
    let list =
        |one: fn(&(i64, Exceeded)) -> String| over.iter().map(one).collect::<Vec<_>>().join(", ");
    if over.is_empty() {
        return Ok(());
    }
    Err(refuse::over_quota(
        list(|one| one.1.name.to_owned()),
        list(|one| one.0.to_string()),
        list(|one| one.1.used.to_string()),
        list(|one| one.1.limit.to_string()),
    ))
}

/// Adds a server to the usage.
pub(super) fn take(world: &mut World, project: &str, flavor: &Object) {
    let usage = world.records.usage.entry(project.to_owned()).or_default();
    usage.cores += flavor.number("vcpus");
    usage.ram += flavor.number("ram");
}

/// Subtracts a server from the usage.
pub(super) fn give_back(world: &mut World, server: &Object) {
    let Some(flavor) = world.store.get(Kind::Flavor, server.note("flavor")) else { return };
    let usage = world.records.usage.entry(server.project.clone()).or_default();
    usage.cores -= flavor.number("vcpus");
    usage.ram -= flavor.number("ram");
}

/// Answers `GET /limits`.
pub(super) fn absolute(world: &World, asked: &ApiRequest) -> ApiAnswer {
    let other = asked.query("tenant_id").or_else(|| asked.query("project_id"));
    let project = other.filter(|_| asked.caller.is_admin()).unwrap_or(&asked.caller.project);
    let limit = |name: &str| QUOTAS.limit(world, project, name);
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
pub(super) fn quotas(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let [project, rest @ ..] = path else { return Err(ApiError::unknown_path()) };
    asked.allow(asked.sees(project), "os_compute_api:os-quota-sets:show")?;
    let mut body: Value = match (asked.method.as_str(), rest) {
        ("GET", []) => QUOTAS.limits(world, project),
        ("GET", ["defaults"]) => QUOTAS.limits(world, ""),
        ("GET", ["detail"]) => QUOTAS.each(|name| {
            let limit = QUOTAS.limit(world, project, name);
            json!({"limit": limit, "in_use": used(world, project, name), "reserved": 0})
        }),
        ("PUT", []) => {
            // Nova checks the body of the request before the rights of its sender.
            let limits = QUOTAS.parse(asked.wrapped("quota_set")?, &["force", "tenant_id"]);
            let limits = limits.map_err(refuse::unknown_quota)?;
            asked.admin("os_compute_api:os-quota-sets:update")?;
            QUOTAS.set(world, project, limits);
            return Ok(Answer::ok(json!({"quota_set": QUOTAS.limits(world, project)})));
        }
        ("DELETE", []) => {
            asked.admin("os_compute_api:os-quota-sets:delete")?;
            QUOTAS.reset(world, project);
            return Ok(Answer::empty(202));
        }
        _ => return Err(ApiError::unknown_path()),
    };
    body["id"] = json!(project);
    Ok(Answer::ok(json!({"quota_set": body})))
}
