//! The quotas of Neutron.

use serde_json::{Value, json};

use super::refuse;
use crate::object::Kind;
use crate::quota::Quotas;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;

const QUOTAS: Quotas = Quotas(&[
    ("network", Some(Kind::Network), 100),
    ("subnet", Some(Kind::Subnet), 100),
    ("port", Some(Kind::Port), 500),
    ("router", Some(Kind::Router), 10),
    ("floatingip", Some(Kind::FloatingIp), 50),
    ("security_group", Some(Kind::SecurityGroup), 10),
    ("security_group_rule", Some(Kind::SecurityGroupRule), 100),
]);

/// Neutron's quotas of objects that do not exist here, and flags of the request itself.
const IGNORED: [&str; 5] = ["subnetpool", "rbac_policy", "trunk", "check_limit", "force"];

/// Refuses `more` objects of a kind if they exceed the quota.
pub(crate) fn check(world: &World, project: &str, kind: Kind, more: usize) -> ApiResult {
    match QUOTAS.exceeded(world, project, kind, more) {
        Some(over) => Err(refuse::over_quota(over.name)),
        None => Ok(()),
    }
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let quota = |body: Value| Ok(Answer::ok(json!({"quota": body})));
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
        ("GET", [_, "default"]) => quota(limits(world, "")),
        ("GET", [project] | [project, "details.json" | "details"]) if !asked.sees(project) => {
            Err(refuse::not_own("get", "quota"))
        }
        ("GET", [project]) => quota(limits(world, project)),
        ("GET", [project, "details.json" | "details"]) => quota(QUOTAS.each(|name| {
            let limit = QUOTAS.limit(world, project, name);
            json!({"limit": limit, "used": QUOTAS.count(world, project, name), "reserved": 0})
        })),
        ("PUT", [project]) => {
            asked.admin("update_quota")?;
            let given = QUOTAS.parse(asked.wrapped("quota")?, &IGNORED);
            QUOTAS.set(world, project, given.map_err(refuse::unknown_quota)?);
            quota(limits(world, project))
        }
        ("DELETE", [project]) => {
            asked.admin("delete_quota")?;
            QUOTAS.reset(world, project);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn limits(world: &World, project: &str) -> Value {
    let mut body = QUOTAS.limits(world, project);
    body["subnetpool"] = json!(-1);
    body["rbac_policy"] = json!(10);
    body
}
