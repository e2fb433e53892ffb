//! Quotas of volumes, snapshots and gigabytes.

use serde_json::json;

use crate::index::PROJECT;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::World;

const LIMITS: [(&str, i64); 3] = [("volumes", 10), ("snapshots", 10), ("gigabytes", 1000)];

fn used(world: &World, project: &str) -> [i64; 3] {
    let count = |kind| i64::try_from(world.store.count(kind, project)).unwrap_or(i64::MAX);
    let size = |kind| {
        world
            .store
            .with_text(kind, PROJECT, project)
            .map(|one: &Object| one.number("size"))
            .sum::<i64>()
    };
    [count(Kind::Volume), count(Kind::Snapshot), size(Kind::Volume) + size(Kind::Snapshot)]
}

/// Refuses a request that would exceed a quota.
pub(super) fn check(
    world: &World,
    project: &str,
    volumes: i64,
    snapshots: i64,
    gigabytes: i64,
) -> Result<(), ApiError> {
    let used = used(world, project);
    let wanted = [volumes, snapshots, gigabytes];
    for (at, (name, default)) in LIMITS.into_iter().enumerate() {
        let limit = world.quota(project, name, default);
        if limit < 0 || wanted[at] == 0 || used[at] + wanted[at] <= limit {
            continue;
        }
        let message = match name {
            "gigabytes" => format!(
                "Requested volume or snapshot exceeds allowed gigabytes quota. Requested {}G, quota is {limit}G and {}G has been consumed.",
                wanted[at], used[at]
            ),
            "volumes" => {
                format!("Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'.")
            }
            _ => format!(
                "Maximum number of snapshots allowed ({limit}) exceeded for quota 'snapshots'."
            ),
        };
        return Err(ApiError::new(413, "", message));
    }
    Ok(())
}

/// Answers `GET /limits`.
pub(super) fn absolute(world: &World, asked: &ApiRequest) -> AnswerResult {
    let project = &asked.caller.project;
    let [volumes, snapshots, gigabytes] = used(world, project);
    let limit = |at: usize| world.quota(project, LIMITS[at].0, LIMITS[at].1);
    let absolute = json!({
        "maxTotalVolumes": limit(0), "maxTotalSnapshots": limit(1), "maxTotalVolumeGigabytes": limit(2), "totalVolumesUsed": volumes,
        "totalSnapshotsUsed": snapshots, "totalGigabytesUsed": gigabytes, "maxTotalBackups": 10, "maxTotalBackupGigabytes": 1000,
        "totalBackupsUsed": 0, "totalBackupGigabytesUsed": 0,
    });
    Ok(Answer::ok(json!({"limits": {"rate": [], "absolute": absolute}})))
}

/// Answers `/os-quota-sets/{project}`.
pub(super) fn quotas(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let Some(project) = path.first().copied() else { return Err(ApiError::unknown_path()) };
    if !asked.sees(project) {
        return Err(ApiError::forbidden(
            "Policy doesn't allow volume_extension:quotas:show to be performed.",
        ));
    }
    if asked.method == http::Method::PUT {
        if !asked.caller.is_admin() {
            return Err(ApiError::forbidden(
                "Policy doesn't allow volume_extension:quotas:update to be performed.",
            ));
        }
        for (name, value) in asked.wrapped("quota_set")? {
            if let Some(value) =
                value.as_i64().filter(|_| LIMITS.iter().any(|(limit, _)| *limit == name))
            {
                world.quotas.insert((project.to_owned(), name), value);
            }
        }
    }
    let used = used(world, project);
    let detail = asked.flag("usage") && asked.query("usage").is_some();
    let mut body = json!({"id": project, "backups": 10, "backup_gigabytes": 1000, "groups": 10, "per_volume_gigabytes": -1});
    for (at, (name, default)) in LIMITS.into_iter().enumerate() {
        let limit = world.quota(project, name, default);
        body[name] = if detail {
            json!({"limit": limit, "in_use": used[at], "reserved": 0, "allocated": 0})
        } else {
            json!(limit)
        };
    }
    Ok(Answer::ok(json!({"quota_set": body})))
}
