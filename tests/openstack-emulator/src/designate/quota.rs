//! Quotas of zones and recordsets.

use serde_json::json;

use crate::quota::Quotas;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;

const QUOTAS: Quotas = Quotas(&[
    ("zones", None, 10),
    ("zone_recordsets", None, 500),
    ("zone_records", None, 500),
    ("recordset_records", None, 20),
    ("api_export_size", None, 1000),
]);

/// Refuses `more` objects in addition to `used` ones if they exceed the quota.
pub(super) fn check(
    world: &World,
    project: &str,
    name: &'static str,
    used: usize,
    more: usize,
) -> ApiResult {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match QUOTAS.exceeded_by(world, project, name, number(used), number(more)) {
        Some(_) => Err(ApiError::new(413, "over_quota", format!("Quota exceeded for {name}."))),
        None => Ok(()),
    }
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let project = path.first().copied().unwrap_or(&asked.caller.project).to_owned();
    match (asked.method.as_str(), asked.sees(&project), asked.caller.is_admin()) {
        ("GET", true, _) => {}
        ("PATCH", true, true) => {
            let given = asked.json()?.as_object().cloned().unwrap_or_default().into_iter();
            let given = given.filter_map(|(name, value)| Some((name, value.as_i64()?)));
            QUOTAS.set(world, &project, given);
        }
        ("DELETE", true, true) => {
            QUOTAS.reset(world, &project);
            return Ok(Answer::empty(204));
        }
        _ => return Err(ApiError::forbidden("Forbidden")),
    }
    Ok(Answer::ok(QUOTAS.limits(world, &project)))
}

/// Answers `GET /limits`.
pub(super) fn limits(world: &World, asked: &ApiRequest) -> ApiAnswer {
    let limit = |name: &str| QUOTAS.limit(world, &asked.caller.project, name);
    Ok(Answer::ok(json!({
        "max_zones": limit("zones"), "max_zone_recordsets": limit("zone_recordsets"), "max_zone_records": limit("zone_records"),
        "max_recordset_records": limit("recordset_records"), "max_recordset_name_length": 255, "max_zone_name_length": 255,
        "max_page_limit": 1000, "default_limit": 20, "min_ttl": null,
    })))
}
