//! Quotas of zones and recordsets.

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

const LIMITS: [(&str, i64); 5] = [
    ("zones", 10),
    ("zone_recordsets", 500),
    ("zone_records", 500),
    ("recordset_records", 20),
    ("api_export_size", 1000),
];

fn limit(world: &World, project: &str, name: &str) -> i64 {
    let default =
        LIMITS.iter().find(|(known, _)| *known == name).map_or(-1, |(_, default)| *default);
    world.quota(project, name, default)
}

/// Refuses one more object if `count` objects fill the quota already.
pub(super) fn check(
    world: &World,
    project: &str,
    name: &str,
    count: usize,
) -> Result<(), ApiError> {
    let limit = limit(world, project, name);
    if usize::try_from(limit).is_ok_and(|limit| count >= limit) {
        return Err(ApiError::new(413, "over_quota", format!("Quota exceeded for {name}.")));
    }
    Ok(())
}

fn all(world: &World, project: &str) -> Value {
    Value::Object(
        LIMITS
            .iter()
            .map(|(name, _)| ((*name).to_owned(), json!(limit(world, project, name))))
            .collect(),
    )
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let project = path.first().copied().unwrap_or(&asked.caller.project).to_owned();
    if !asked.sees(&project) {
        return Err(ApiError::forbidden("Forbidden"));
    }
    match asked.method.as_str() {
        "GET" => Ok(Answer::ok(all(world, &project))),
        "PATCH" if asked.caller.is_admin() => {
            for (name, value) in asked.json()?.as_object().into_iter().flatten() {
                if let Some(value) =
                    value.as_i64().filter(|_| LIMITS.iter().any(|(known, _)| known == name))
                {
                    world.quotas.insert((project.clone(), name.clone()), value);
                }
            }
            Ok(Answer::ok(all(world, &project)))
        }
        "DELETE" if asked.caller.is_admin() => {
            world.quotas.retain(|(of, name), _| {
                *of != project || !LIMITS.iter().any(|(known, _)| known == name)
            });
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::forbidden("Forbidden")),
    }
}

/// Answers `GET /limits`.
pub(super) fn limits(world: &World, asked: &ApiRequest) -> AnswerResult {
    let project = &asked.caller.project;
    Ok(Answer::ok(json!({
        "max_zones": limit(world, project, "zones"), "max_zone_recordsets": limit(world, project, "zone_recordsets"),
        "max_zone_records": limit(world, project, "zone_records"), "max_recordset_records": limit(world, project, "recordset_records"),
        "max_recordset_name_length": 255, "max_zone_name_length": 255, "max_page_limit": 1000, "default_limit": 20, "min_ttl": null,
    })))
}
