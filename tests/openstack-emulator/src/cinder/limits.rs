//! Quotas of volumes, snapshots and gigabytes.

use serde_json::json;

use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::quota::Quotas;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

const QUOTAS: Quotas = Quotas(&[
    ("volumes", Some(Kind::Volume), 10),
    ("snapshots", Some(Kind::Snapshot), 10),
    ("gigabytes", None, 1000),
]);

fn used(world: &World, project: &str, name: &str) -> i64 {
    let size = |kind| -> i64 {
        world.store.with_text(kind, PROJECT, project).map(|one: &Object| one.number("size")).sum()
    };
    match name {
        "gigabytes" => size(Kind::Volume) + size(Kind::Snapshot),
        name => QUOTAS.count(world, project, name),
    }
}

/// Refuses a new volume or snapshot, counted by the quota `name`, that would exceed a quota.
pub(super) fn check(
    world: &World,
    project: &str,
    name: &'static str,
    gigabytes: i64,
) -> Result<(), ApiError> {
    for (name, more) in [(name, 1), ("gigabytes", gigabytes)] {
        let used = used(world, project, name);
        let over = QUOTAS.exceeded_by(world, project, name, used, more);
        let Some(over) = over.filter(|_| more != 0) else { continue };
        let (limit, used) = (over.limit, over.used);
        let message = match name {
            "gigabytes" => format!(
                "Requested volume or snapshot exceeds allowed gigabytes quota. Requested {more}G, quota is {limit}G and {used}G has been consumed."
            ),
            _ => format!("Maximum number of {name} allowed ({limit}) exceeded for quota '{name}'."),
        };
        return Err(ApiError::new(413, "", message));
    }
    Ok(())
}

/// Answers `GET /limits`.
pub(super) fn absolute(world: &World, asked: &ApiRequest) -> AnswerResult {
    let project = &asked.caller.project;
    let limit = |name: &str| QUOTAS.limit(world, project, name);
    let used = |name: &str| used(world, project, name);
    let absolute = json!({
        "maxTotalVolumes": limit("volumes"), "maxTotalSnapshots": limit("snapshots"), "maxTotalVolumeGigabytes": limit("gigabytes"),
        "totalVolumesUsed": used("volumes"), "totalSnapshotsUsed": used("snapshots"), "totalGigabytesUsed": used("gigabytes"),
        "maxTotalBackups": 10, "maxTotalBackupGigabytes": 1000, "totalBackupsUsed": 0, "totalBackupGigabytesUsed": 0,
    });
    Ok(Answer::ok(json!({"limits": {"rate": [], "absolute": absolute}})))
}

/// Answers `/os-quota-sets/{project}`.
pub(super) fn quotas(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let Some(project) = path.first().copied() else { return Err(ApiError::unknown_path()) };
    let allowed = |is_allowed: bool, action: &str| match is_allowed {
        true => Ok(()),
        false => Err(ApiError::forbidden(format!(
            "Policy doesn't allow volume_extension:quotas:{action} to be performed."
        ))),
    };
    allowed(asked.sees(project), "show")?;
    if asked.method == http::Method::PUT {
        allowed(asked.caller.is_admin(), "update")?;
        let given = asked.wrapped("quota_set")?.into_iter();
        QUOTAS.set(world, project, given.filter_map(|(name, value)| Some((name, value.as_i64()?))));
    }
    let detail = asked.flag("usage") && asked.query("usage").is_some();
    let mut body = QUOTAS.each(|name| {
        let limit = QUOTAS.limit(world, project, name);
        match detail {
            true => json!({"limit": limit, "in_use": used(world, project, name), "reserved": 0, "allocated": 0}),
            false => json!(limit),
        }
    });
    for (name, value) in
        [("backups", 10), ("backup_gigabytes", 1000), ("groups", 10), ("per_volume_gigabytes", -1)]
    {
        body[name] = json!(value);
    }
    body["id"] = json!(project);
    Ok(Answer::ok(json!({"quota_set": body})))
}
