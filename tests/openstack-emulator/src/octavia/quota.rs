//! The quotas of Octavia.

use serde_json::{Value, json};

use super::refuse;
use crate::object::Kind;
use crate::quota::Quotas;
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::World;

/// Older clients write the names as one word.
const QUOTAS: Quotas = Quotas(&[
    ("load_balancer", Some(Kind::LoadBalancer), -1),
    ("listener", Some(Kind::Listener), -1),
    ("pool", Some(Kind::Pool), -1),
    ("member", Some(Kind::Member), -1),
    ("health_monitor", Some(Kind::HealthMonitor), -1),
]);

/// Refuses one more object if it exceeds the quota.
pub(super) fn check(world: &World, project: &str, kind: Kind, word: &str) -> ApiResult {
    match QUOTAS.exceeded(world, project, kind, 1) {
        Some(_) => Err(refuse::over_quota(word)),
        None => Ok(()),
    }
}

fn limits(world: &World, project: &str) -> Value {
    let mut body = QUOTAS.limits(world, project);
    for name in ["load_balancer", "health_monitor"] {
        body[name.replace('_', "")] = body[name].clone();
    }
    for other in ["l7policy", "l7rule"] {
        body[other] = json!(-1);
    }
    json!({"quota": body})
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    match (asked.method.as_str(), path) {
        ("GET", ["defaults"] | [_, "default"]) => Ok(Answer::ok(limits(world, ""))),
        ("GET", [project]) if asked.sees(project) => Ok(Answer::ok(limits(world, project))),
        ("PUT", [project]) => {
            asked.admin("os_load-balancer_api:quota:put")?;
            let given = asked.wrapped("quota")?.into_iter();
            let whole = |name: String| match name.as_str() {
                "loadbalancer" => "load_balancer".to_owned(),
                "healthmonitor" => "health_monitor".to_owned(),
                _ => name,
            };
            let given = given.filter_map(|(name, value)| Some((whole(name), value.as_i64()?)));
            QUOTAS.set(world, project, given);
            Ok(Answer::json(202, limits(world, project)))
        }
        ("DELETE", [project]) => {
            asked.admin("os_load-balancer_api:quota:delete")?;
            QUOTAS.reset(world, project);
            Ok(Answer::empty(204))
        }
        _ => Err(refuse::policy()),
    }
}
