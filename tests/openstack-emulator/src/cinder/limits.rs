//! Quotas of volumes, snapshots and gigabytes.

use serde_json::json;

use super::types as refuse;
use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::quota::Quotas;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
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
pub(super) fn check(world: &World, project: &str, name: &'static str, gigabytes: i64) -> ApiResult {
    for (name, more) in [(name, 1), ("gigabytes", gigabytes)] {
        let used = used(world, project, name);
        let over = QUOTAS.exceeded_by(world, project, name, used, more);
        let Some(over) = over.filter(|_| more != 0) else { continue };
        return Err(match name {
            "gigabytes" => refuse::too_large(more, over.limit, over.used),
            _ => refuse::too_many(name, over.limit),
        });
    }
    Ok(())
}

/// Answers `GET /limits`.
pub(super) fn absolute(world: &World, asked: &ApiRequest) -> ApiAnswer {
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
pub(super) fn quotas(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let [project, ..] = path else { return Err(ApiError::unknown_path()) };
    asked.allow(asked.sees(project), "volume_extension:quotas:show")?;
    if asked.method == http::Method::PUT {
        asked.admin("volume_extension:quotas:update")?;
        let given = asked.wrapped("quota_set")?.into_iter();
        QUOTAS.set(world, project, given.filter_map(|(name, value)| Some((name, value.as_i64()?))));
    }
    let detail = asked.flag("usage");
    let mut body = QUOTAS.each(|name| {
        let limit = QUOTAS.limit(world, project, name);
        match detail {
            true => json!({"limit": limit, "in_use": used(world, project, name), "reserved": 0, "allocated": 0}),
            false => json!(limit),
        }
    });
    body["backups"] = json!(10);
    body["backup_gigabytes"] = json!(1000);
    body["groups"] = json!(10);
    body["per_volume_gigabytes"] = json!(-1);
    body["id"] = json!(project);
    Ok(Answer::ok(json!({"quota_set": body})))
}
