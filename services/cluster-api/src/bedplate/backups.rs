//! `/bedplate/v1/clusters/{cluster}/backups`: backups of a cluster's etcd, and the restoration of its control plane from one.

use axum::response::Response;
use cluster_core::{
    Backup, BackupOrigin, BackupState, BackupStep, BackupUuid, Cluster, GroupRole, Restore,
    RestoreForce, RestorePhase, delete_backup, request_backup, start_restore,
};
use cluster_store::ClusterChange;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, JsonShape, PathParam, Route, Routes, Shaped, StrictJson, Time, json, json_field,
    shaped,
};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, missing};

/// Returns the routes of backups and restorations.
pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List the backups of a cluster's etcd", list)
        .returns(JsonShape::object([("backups", JsonShape::list(Shown::shape()))]));
    let create = Route::post("Back up a cluster's etcd", create)
        .answers(StatusCode::ACCEPTED)
        .returns(Shown::shape())
        .refuses([StatusCode::CONFLICT]);
    let show = Route::get("Show a backup of a cluster's etcd", show).returns(Shown::shape());
    let delete = Route::delete("Delete a backup of a cluster's etcd", delete)
        .answers(StatusCode::ACCEPTED)
        .returns(Shown::shape())
        .refuses([StatusCode::CONFLICT]);
    let restore = Route::post("Restore a cluster's control plane from a backup", restore)
        .reads_if_sent(
            JsonShape::object([])
                .maybe([("backup", JsonShape::text()), ("force", JsonShape::boolean())]),
        )
        .answers(StatusCode::ACCEPTED)
        .returns(restoration())
        .refuses([StatusCode::CONFLICT]);
    let restored = Route::get("Show the restoration of a cluster's control plane", show_restore)
        .returns(restoration());
    Routes::new("bedplate")
        .at("/bedplate/v1/clusters/{cluster}/backups", [list, create])
        .at("/bedplate/v1/clusters/{cluster}/backups/{backup}", [show, delete])
        .at("/bedplate/v1/clusters/{cluster}/restore", [restored, restore])
}

/// The response schema of a cluster with its restoration.
fn restoration() -> JsonShape {
    JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("restore", ShownRestore::shape().or_null()),
    ])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        uuid: String,
        origin: &'static str = JsonShape::enumeration(BackupOrigin::ALL.map(BackupOrigin::as_str)),
        state: &'static str = JsonShape::enumeration(BackupState::ALL.map(BackupState::as_str)),
        requested_at: Time,
        /// The step that is due; null if there is none, also because members have failed too often.
        step: Option<&'static str> = JsonShape::enumeration(BackupStep::ALL.map(BackupStep::as_str)).or_null(),
        /// The member that takes or tests it now.
        member: Option<String>,
        /// How often members failed at the step that is due.
        failures: u32,
        last_error: Option<&'a str>,
        stored_at: Option<Time>,
        /// In bytes.
        size: Option<u64>,
        sha256: Option<&'a str>,
        revision: Option<u64>,
        etcd: Option<&'a str>,
        kubernetes: Option<String>,
        /// When the stored object was restored into an empty folder.
        tested_at: Option<Time>,
    }
}

impl<'a> From<&'a Backup> for Shown<'a> {
    fn from(backup: &'a Backup) -> Self {
        let contents = backup.contents.as_ref();
        Shown {
            uuid: backup.id.to_string(),
            origin: backup.origin.as_str(),
            state: backup.state.as_str(),
            requested_at: Time(backup.requested_at),
            step: backup.step().map(BackupStep::as_str),
            member: backup.work.as_ref().map(|work| work.member.to_string()),
            failures: backup.failures,
            last_error: backup.last_error.as_deref(),
            stored_at: Time::some(contents.map(|it| it.stored_at)),
            size: contents.map(|it| it.size),
            sha256: contents.map(|it| it.sha256.as_str()),
            revision: contents.map(|it| it.revision),
            etcd: contents.map(|it| it.etcd.as_str()),
            kubernetes: contents.map(|it| it.kubernetes.to_string()),
            tested_at: Time::some(backup.tested_at),
        }
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownRestore {
        backup: String,
        phase: &'static str = JsonShape::enumeration(RestorePhase::ALL.map(RestorePhase::as_str)),
        requested_at: Time,
    }
}

/// `GET …/backups`: the backups of a cluster, oldest first.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let shown: Vec<Shown<'_>> = cluster.backups.iter().map(Shown::from).collect();
    Ok(json_field(StatusCode::OK, "backups", &shown))
}

/// `POST …/backups`: records the request. A control-plane member takes the backup within a minute.
async fn create(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let app = &request.app;
    let (id, now) = (BackupUuid::from_untyped_uuid((app.ids)()), (app.clock)());
    let cluster = request.change(&ident, |cluster, _| {
        check_store(app)?;
        app.check_upgraded()?;
        let asked = request_backup(&cluster, id, now)?;
        let said = format!("backup {id} of etcd requested");
        let events = vec![app.request_event(&cluster, "BackupRequested", said)];
        Ok(ClusterChange { events, ..ClusterChange::of(asked) })
    });
    let cluster = cluster.await?;
    Ok(json(StatusCode::ACCEPTED, &Shown::from(found(&cluster, &id.to_string())?)))
}

/// `GET …/backups/{backup}`: one backup.
async fn show(
    request: Request,
    PathParam((ident, backup)): PathParam<(String, String)>,
) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    Ok(json(StatusCode::OK, &Shown::from(found(&cluster, &backup)?)))
}

/// `DELETE …/backups/{backup}`: records the wish. The conductor deletes the object in the store, and then the record.
async fn delete(
    request: Request,
    PathParam((ident, backup)): PathParam<(String, String)>,
) -> Result<Response> {
    let app = &request.app;
    let cluster = request.change(&ident, |cluster, _| {
        let id = found(&cluster, &backup)?.id;
        let changed = delete_backup(&cluster, id)?.ok_or_else(|| missing("Backup", &backup))?;
        let said = format!("deletion of backup {id} of etcd requested");
        let events = vec![app.request_event(&cluster, "BackupDeletionRequested", said)];
        Ok(ClusterChange { events, ..ClusterChange::of(changed) })
    });
    let cluster = cluster.await?;
    Ok(json(StatusCode::ACCEPTED, &Shown::from(found(&cluster, &backup)?)))
}

/// The request for a restoration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RestoreAsked {
    /// The id of the backup; the newest tested one if missing.
    backup: Option<String>,
    /// Whether a control plane that is available is replaced too.
    force: bool,
}

/// `POST …/restore`: records the request. The conductor replaces all control-plane servers by new ones that start from the backup.
async fn restore(
    request: Request,
    PathParam(ident): PathParam<String>,
    body: Option<StrictJson<RestoreAsked>>,
) -> Result<Response> {
    let app = &request.app;
    let RestoreAsked { backup, force } = body.map(|StrictJson(body)| body).unwrap_or_default();
    let force = if force { RestoreForce::Always } else { RestoreForce::IfLost };
    let backup = backup.map(|id| {
        id.parse::<BackupUuid>()
            .map_err(|_| ApiError::bad_field("backup", "must be the id of a backup"))
    });
    let (backup, now) = (backup.transpose()?, (app.clock)());
    check_new_members(&request, &ident).await?;
    let cluster = request.change(&ident, |cluster, groups| {
        check_store(app)?;
        app.check_upgraded()?;
        let begun = start_restore(&cluster, &groups, backup, force, now)?;
        let new = begun.restore.as_ref().filter(|_| begun.restore != cluster.restore);
        let said = |it: &Restore| {
            let from = it.backup;
            format!("restoration of the control plane from backup {from} requested")
        };
        let event = |it| app.request_event(&cluster, "RestoreRequested", said(it));
        let events = new.into_iter().map(event).collect();
        Ok(ClusterChange { events, ..ClusterChange::of(begun) })
    });
    Ok(restore_answer(StatusCode::ACCEPTED, &cluster.await?))
}

/// Refuses a control plane whose new members would not start from the backup: clusterd cannot make their config, or their config is not
/// clusterd's.
async fn check_new_members(request: &Request, ident: &str) -> Result<()> {
    let cluster = request.cluster(ident).await?;
    let mut masters = request.app.store.groups_of(cluster.id).await?;
    masters.retain(|group| group.role == GroupRole::Master);
    request.app.conductor.check_member_configs(&cluster, &masters)?;
    for group in &masters {
        if request.app.conductor.has_own_config(&cluster, group).await? {
            let why = format!(
                "node group {} has an Ignition config of its own, with which no member starts from a backup; remove the config first",
                group.name
            );
            return Err(ApiError::conflict(why).into());
        }
    }
    Ok(())
}

/// `GET …/restore`: null if no restoration is in progress.
async fn show_restore(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    Ok(restore_answer(StatusCode::OK, &request.cluster(&ident).await?))
}

fn restore_answer(status: StatusCode, cluster: &Cluster) -> Response {
    #[derive(Serialize)]
    struct Body<'a> {
        uuid: String,
        name: &'a str,
        restore: Option<ShownRestore>,
    }
    let restore = cluster.restore.as_ref().map(|restore| ShownRestore {
        backup: restore.backup.to_string(),
        phase: restore.phase.as_str(),
        requested_at: Time(restore.requested_at),
    });
    let (uuid, name) = (cluster.id.to_string(), cluster.name.as_str());
    json(status, &Body { uuid, name, restore })
}

/// Refuses a request that needs the store of backups when clusterd has none.
fn check_store(app: &App) -> Result<(), ApiError> {
    if app.conductor.stores_backups() {
        return Ok(());
    }
    let why = "clusterd has no store for backups: an administrator has to configure [backups]";
    Err(ApiError::conflict(why))
}

/// Finds the backup with this id.
fn found<'a>(cluster: &'a Cluster, ident: &str) -> Result<&'a Backup, ApiError> {
    let id = ident.parse::<BackupUuid>().map_err(|_| missing("Backup", ident))?;
    let backup = cluster.backups.iter().find(|backup| backup.id == id);
    backup.ok_or_else(|| missing("Backup", ident))
}
