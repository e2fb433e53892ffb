//! Backups of etcd: members ask for work, send snapshots and fetch them.

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cluster_conductor::{
    BackupHandout, Conductor, ObjectBytes, SnapshotDownload, SnapshotReceipt, SnapshotReport,
};
use cluster_core::BackupTask;
use futures::{StreamExt, TryStreamExt};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::credential::{bearer, not_found};

/// Returns the routes with small bodies.
pub(super) fn routes() -> Router<Conductor> {
    Router::new()
        .route("/v1/backups/{claim}", get(ask))
        .route("/v1/backups/{claim}/{backup}/result", post(note_result))
}

/// Returns the routes that move snapshots.
pub(super) fn transfers() -> Router<Conductor> {
    Router::new().route("/v1/backups/{claim}/{backup}", get(fetch).put(take))
}

/// The query of a member that asks for work.
#[derive(Deserialize)]
struct WorkQuery {
    /// The number of restorations that the member knows of.
    restores: u32,
}

/// `GET /v1/backups/{claim}?restores=NUMBER`: the member's work on backups.
///
/// Answers 204 if there is none, 202 if there may be some soon, and otherwise a line: `save ID`, `test ID` or `refresh NUMBER`.
async fn ask(
    State(conductor): State<Conductor>,
    Path(claim): Path<String>,
    headers: HeaderMap,
    query: Result<Query<WorkQuery>, QueryRejection>,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(Query(WorkQuery { restores })) = query else { return not_found() };
    match conductor.backup_work(&claim, token, restores).await {
        BackupHandout::Nothing => not_found(),
        BackupHandout::Rest => StatusCode::NO_CONTENT.into_response(),
        BackupHandout::Soon => StatusCode::ACCEPTED.into_response(),
        BackupHandout::Work(BackupTask { backup, step }) => {
            format!("{step} {backup}\n").into_response()
        }
        BackupHandout::Refresh(number) => format!("refresh {number}\n").into_response(),
    }
}

/// The query of a member that sends a snapshot.
#[derive(Deserialize)]
struct SnapshotQuery {
    revision: u64,
    etcd: String,
    sha256: String,
}

/// `PUT /v1/backups/{claim}/{backup}?revision=NUMBER&etcd=VERSION&sha256=SUM`: takes a snapshot.
async fn take(
    State(conductor): State<Conductor>,
    Path((claim, backup)): Path<(String, String)>,
    headers: HeaderMap,
    query: Result<Query<SnapshotQuery>, QueryRejection>,
    body: Body,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(Query(SnapshotQuery { revision, etcd, sha256 })) = query else { return not_found() };
    let said = SnapshotReport { sha256, revision, etcd };
    let bytes: ObjectBytes = body.into_data_stream().map_err(Into::into).boxed();
    match conductor.take_snapshot(&claim, token, &backup, said, bytes).await {
        SnapshotReceipt::Nothing => not_found(),
        SnapshotReceipt::Stored => StatusCode::NO_CONTENT.into_response(),
        SnapshotReceipt::Failed => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// `GET /v1/backups/{claim}/{backup}`: the snapshot that the member has to test, or that its etcd starts from.
async fn fetch(
    State(conductor): State<Conductor>,
    Path((claim, backup)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    match conductor.snapshot_for(&claim, token, &backup).await {
        None => not_found(),
        Some(SnapshotDownload { size, bytes }) => {
            let headers = [
                (CONTENT_TYPE, "application/octet-stream".to_owned()),
                (CONTENT_LENGTH, size.to_string()),
                (CACHE_CONTROL, "no-store".to_owned()),
            ];
            (headers, Body::from_stream(bytes)).into_response()
        }
    }
}

/// The form that a member sends after its work.
#[derive(Deserialize)]
struct WorkResult {
    result: String,
    #[serde(default)]
    message: String,
}

/// `POST /v1/backups/{claim}/{backup}/result`: a form with `result` and `message`. Any result but `success` is a failure.
async fn note_result(
    State(conductor): State<Conductor>,
    Path((claim, backup)): Path<(String, String)>,
    headers: HeaderMap,
    body: Result<Form<WorkResult>, FormRejection>,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(Form(WorkResult { result, message })) = body else { return not_found() };
    let failed = (result != "success").then_some(message);
    match conductor.note_backup_result(&claim, token, &backup, failed).await {
        true => StatusCode::NO_CONTENT.into_response(),
        false => not_found(),
    }
}
