//! Snapshots of VMs. A snapshot may outlive its VM.

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use cluster_core::{Ident, Page, Snapshot, SnapshotOrigin, SnapshotUuid, VmEvent, VmSort, VmUuid};
use cluster_store::{SnapshotChange, VmScope};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    Caller, JsonShape, ListPart, Origin, PathParam, Query, Route, Routes, StrictJson, json,
};
use utoipa::PartialSchema;

use super::body::{NewSnapshot, label};
use super::list_query::page;
use super::view::{ShownSnapshot, snapshot_shape};
use crate::app::{App, missing};
use crate::change::retry_stale;
use crate::error::Error;
use crate::listing::list_of;

pub(super) fn routes() -> Routes<App> {
    let of_machine = [
        Route::get("List the snapshots of a VM", of_machine)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir"])
            .returns(JsonShape::page("snapshots", snapshot_shape())),
        Route::post("Take a snapshot of a VM", create)
            .reads(NewSnapshot::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(snapshot_shape())
            .refuses([StatusCode::CONFLICT]),
    ];
    let one = [
        Route::get("Show a snapshot", show).returns(snapshot_shape()),
        Route::delete("Delete a snapshot", delete)
            .answers(StatusCode::ACCEPTED)
            .returns(snapshot_shape()),
    ];
    Routes::new("snapshots")
        .at("/bedplate/v1/machines/{machine}/snapshots", of_machine)
        .at(
            "/bedplate/v1/snapshots",
            [Route::get("List snapshots", list)
                .query_parameters(["limit", "marker", "sort_key", "sort_dir"])
                .returns(JsonShape::page("snapshots", snapshot_shape()))],
        )
        .at("/bedplate/v1/snapshots/{snapshot}", one)
}

impl App {
    /// Finds the snapshot with this id or name.
    async fn snapshot(&self, caller: &Caller, ident: &str) -> Result<Snapshot, Error> {
        let missing = || missing("Snapshot", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.vm_scopes(caller) {
            let found = self.store.find_snapshots(&parsed, &scope).await?;
            if let Some(found) = found.into_iter().next() {
                return Ok(found);
            }
        }
        Err(missing().into())
    }
}

/// `POST /bedplate/v1/machines/{machine}/snapshots`: records the request. The conductor has the snapshot created.
async fn create(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<NewSnapshot>,
) -> Result<Response, Error> {
    let vm = app.machine(&caller, &ident).await?;
    vm.check_snapshot()?;
    let (now, id) = ((app.clock)(), SnapshotUuid::from_untyped_uuid((app.ids)()));
    let made_up = || {
        let kept: String = vm.name.as_str().chars().take(54).collect();
        format!("{kept}-{}", id.to_string().get(..8).unwrap_or_default())
    };
    let name = label("name", &body.name.unwrap_or_else(made_up))?;
    let snapshot = Snapshot::new(id, &vm, name, SnapshotOrigin::Asked, now);
    let said = format!("snapshot {} requested", snapshot.name);
    let event = VmEvent::info(&vm, "SnapshotAsked", said, now);
    let within = Some(&app.settings.quotas);
    app.store.insert_snapshot(&snapshot, &[event], within).await?;
    app.conductor.wake_snapshot(id);
    Ok(json(StatusCode::ACCEPTED, &ShownSnapshot::from(&snapshot)))
}

/// `GET /bedplate/v1/machines/{machine}/snapshots`: the snapshots of a VM.
async fn of_machine(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    PathParam(ident): PathParam<String>,
    query: Query,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let page = page(&mut rest)?;
    rest.finish()?;
    let vm = app.machine(&caller, &ident).await?;
    let scope = app.visible_vms(&caller);
    listed(scope, Some(vm.id), &page, (&app, &origin, uri.path(), &query)).await
}

/// Answers with one page of snapshots; only those of one VM, when it is given.
async fn listed(
    scope: VmScope,
    vm: Option<VmUuid>,
    page: &Page<VmSort>,
    at: (&App, &Origin, &str, &Query),
) -> Result<Response, Error> {
    let reader = Arc::new((at.0.store.clone(), scope));
    list_of("snapshots", page, at, move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, scope) = &*reader;
            let listed = store.list_snapshots_part(scope, vm, &page, part).await?;
            let id = |snapshot: &Snapshot| snapshot.id;
            Ok(ListPart::of(&listed.found, id, ShownSnapshot::from, listed.more)?)
        })
    })
    .await
}

/// `GET /bedplate/v1/snapshots`: all snapshots, also of deleted VMs.
async fn list(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let page = page(&mut rest)?;
    rest.finish()?;
    listed(app.visible_vms(&caller), None, &page, (&app, &origin, uri.path(), &query)).await
}

/// `GET /bedplate/v1/snapshots/{snapshot}`: one snapshot.
async fn show(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let found = app.snapshot(&caller, &ident).await?;
    Ok(json(StatusCode::OK, &ShownSnapshot::from(&found)))
}

/// `DELETE /bedplate/v1/snapshots/{snapshot}`: records the wish. The conductor deletes the image.
async fn delete(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let written = retry_stale(|| async {
        let found = app.snapshot(&caller, &ident).await?;
        let change = SnapshotChange { snapshot: found.leaving(), events: Vec::new() };
        Ok(app.store.change_snapshot(&change).await?)
    });
    let written = written.await?;
    app.conductor.wake_snapshot(written.id);
    Ok(json(StatusCode::ACCEPTED, &ShownSnapshot::from(&written)))
}
