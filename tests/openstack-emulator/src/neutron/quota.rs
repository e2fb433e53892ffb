//! The quotas of Neutron.

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::Kind;
use crate::world::World;

/// Neutron's names of quotas, with their defaults.
const LIMITS: [(&str, Kind, i64); 7] = [
    ("network", Kind::Network, 100),
    ("subnet", Kind::Subnet, 100),
    ("port", Kind::Port, 500),
    ("router", Kind::Router, 10),
    ("floatingip", Kind::FloatingIp, 50),
    ("security_group", Kind::SecurityGroup, 10),
    ("security_group_rule", Kind::SecurityGroupRule, 100),
];

/// Refuses `more` objects of a kind if they exceed the quota.
pub(crate) fn check(world: &World, project: &str, kind: Kind, more: usize) -> Result<(), ApiError> {
    let Some((name, _, default)) = LIMITS.iter().find(|(_, limited, _)| *limited == kind) else {
        return Ok(());
    };
    let limit = world.quota(project, name, *default);
    let used = world.store.count(kind, project);
    if usize::try_from(limit).is_ok_and(|limit| used + more > limit) {
        return Err(ApiError::new(
            409,
            "OverQuota",
            format!("Quota exceeded for resources: ['{name}']."),
        ));
    }
    Ok(())
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            asked.admin("get_quota")?;
            let mut projects: Vec<String> =
                world.quotas.keys().map(|(project, _)| project.clone()).collect();
            projects.dedup();
            let all = projects.iter().map(|project| {
                let mut body = limits(world, project);
                body["project_id"] = json!(project);
                body["tenant_id"] = json!(project);
                body
            });
            Ok(Answer::ok(json!({"quotas": all.collect::<Vec<_>>()})))
        }
        ("GET", [project]) => {
            mine(asked, project)?;
            Ok(Answer::ok(json!({"quota": limits(world, project)})))
        }
        ("GET", [_, "default"]) => Ok(Answer::ok(json!({"quota": limits(world, "")}))),
        ("GET", [project, "details.json" | "details"]) => {
            mine(asked, project)?;
            let mut body = json!({});
            for (name, kind, default) in LIMITS {
                let (limit, used) =
                    (world.quota(project, name, default), world.store.count(kind, project));
                body[name] = json!({"limit": limit, "used": used, "reserved": 0});
            }
            Ok(Answer::ok(json!({"quota": body})))
        }
        ("PUT", [project]) => {
            asked.admin("update_quota")?;
            for (name, value) in asked.wrapped("quota")? {
                let known = LIMITS.iter().any(|(limit, ..)| *limit == name);
                // Neutron's quotas of objects that do not exist here, and flags of the request itself.
                if ["subnetpool", "rbac_policy", "trunk", "check_limit", "force"]
                    .contains(&name.as_str())
                {
                    continue;
                }
                let value = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                let Some(value) = value.filter(|_| known) else {
                    return Err(ApiError::bad(format!("Unrecognized attribute(s) '{name}'")));
                };
                world.quotas.insert(((*project).to_owned(), name), value);
            }
            Ok(Answer::ok(json!({"quota": limits(world, project)})))
        }
        ("DELETE", [project]) => {
            asked.admin("delete_quota")?;
            world.quotas.retain(|(of, name), _| {
                of != project || !LIMITS.iter().any(|(limit, ..)| limit == name)
            });
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn mine(asked: &ApiRequest, project: &str) -> Result<(), ApiError> {
    if asked.sees(project) {
        return Ok(());
    }
    Err(ApiError::forbidden("rule:get_quota is disallowed by policy"))
}

fn limits(world: &World, project: &str) -> Value {
    let mut body = json!({"subnetpool": -1, "rbac_policy": 10});
    for (name, _, default) in LIMITS {
        body[name] = json!(world.quota(project, name, default));
    }
    body
}
