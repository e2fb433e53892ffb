//! The quotas of Octavia.

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::Kind;
use crate::world::World;

/// Octavia's names of quotas. Older clients write them as one word.
const LIMITS: [(&str, Kind); 5] = [
    ("load_balancer", Kind::LoadBalancer),
    ("listener", Kind::Listener),
    ("pool", Kind::Pool),
    ("member", Kind::Member),
    ("health_monitor", Kind::HealthMonitor),
];

/// Refuses one more object if it exceeds the quota.
pub(super) fn check(world: &World, project: &str, kind: Kind, word: &str) -> Result<(), ApiError> {
    let Some((name, _)) = LIMITS.iter().find(|(_, limited)| *limited == kind) else {
        return Ok(());
    };
    let limit = world.quota(project, name, -1);
    if usize::try_from(limit).is_ok_and(|limit| world.store.count(kind, project) >= limit) {
        return Err(ApiError::forbidden(format!("Quota has been met for resources: {word}")));
    }
    Ok(())
}

fn limits(world: &World, project: &str) -> Value {
    let mut body = json!({"l7policy": -1, "l7rule": -1});
    for (name, _) in LIMITS {
        let limit = world.quota(project, name, -1);
        body[name] = json!(limit);
        body[name.replace('_', "")] = json!(limit);
    }
    body
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    match (asked.method.as_str(), path) {
        ("GET", ["defaults"] | [_, "default"]) => {
            Ok(Answer::ok(json!({"quota": limits(world, "")})))
        }
        ("GET", [project]) if asked.sees(project) => {
            Ok(Answer::ok(json!({"quota": limits(world, project)})))
        }
        ("PUT", [project]) => {
            asked.admin("os_load-balancer_api:quota:put")?;
            for (name, value) in asked.wrapped("quota")? {
                let known = LIMITS
                    .iter()
                    .find(|(limit, _)| *limit == name || limit.replace('_', "") == name);
                if let (Some((known, _)), Some(value)) = (known, value.as_i64()) {
                    world.quotas.insert(((*project).to_owned(), (*known).to_owned()), value);
                }
            }
            Ok(Answer::json(202, json!({"quota": limits(world, project)})))
        }
        ("DELETE", [project]) => {
            asked.admin("os_load-balancer_api:quota:delete")?;
            world.quotas.retain(|(of, name), _| {
                of != project || !LIMITS.iter().any(|(limit, _)| limit == name)
            });
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::forbidden("Policy does not allow this request to be performed.")),
    }
}
