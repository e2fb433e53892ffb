//! Snapshots of VMs. A snapshot may outlive its VM.

use std::sync::Arc;

use axum::response::Response;
use cluster_core::{Ident, Page, Snapshot, SnapshotOrigin, SnapshotUuid, VmEvent, VmSort, VmUuid};
use cluster_store::{SnapshotChange, VmScope};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    JsonShape, ListPart, ListRequest, Origin, PathParam, Query, Route, Routes, Shaped, StrictJson,
    json,
};
use utoipa::PartialSchema;

use super::body::{NewSnapshot, label};
use super::list_query::page;
use super::view::ShownSnapshot;
use crate::app::App;
use crate::change::retry_stale;
use crate::error::Result;
use crate::listing::list_of;
use crate::request::{Request, missing};

pub(super) fn routes() -> Routes<App> {
    let of_machine = [
        Route::get("List the snapshots of a VM", of_machine)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir"])
            .returns(JsonShape::page("snapshots", ShownSnapshot::shape())),
        Route::post("Take a snapshot of a VM", create)
            .reads(NewSnapshot::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(ShownSnapshot::shape())
            .refuses([StatusCode::CONFLICT]),
    ];
    let one = [
        Route::get("Show a snapshot", show).returns(ShownSnapshot::shape()),
        Route::delete("Delete a snapshot", delete)
            .answers(StatusCode::ACCEPTED)
            .returns(ShownSnapshot::shape()),
    ];
    Routes::new("snapshots")
        .at("/bedplate/v1/machines/{machine}/snapshots", of_machine)
        .at(
            "/bedplate/v1/snapshots",
            [Route::get("List snapshots", list)
                .query_parameters(["limit", "marker", "sort_key", "sort_dir"])
                .returns(JsonShape::page("snapshots", ShownSnapshot::shape()))],
        )
        .at("/bedplate/v1/snapshots/{snapshot}", one)
}

impl Request {
    /// Finds the snapshot with this id or name.
    async fn snapshot(&self, ident: &str) -> Result<Snapshot> {
        let missing = || missing("Snapshot", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.vm_scopes() {
            let found = self.app.store.find_snapshots(&parsed, &scope).await?;
            if let Some(found) = found.into_iter().next() {
                return Ok(found);
            }
        }
        Err(missing().into())
    }
}

/// `POST /bedplate/v1/machines/{machine}/snapshots`: records the request. The conductor has the snapshot created.
async fn create(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<NewSnapshot>,
) -> Result<Response> {
    let app = &request.app;
    let vm = request.machine(&ident).await?;
    vm.check_snapshot()?;
    let (now, id) = ((app.clock)(), SnapshotUuid::from_untyped_uuid((app.ids)()));
    let made_up = || {
        let kept: String = vm.name.as_str().chars().take(54).collect();
        format!("{kept}-{}", id.to_string().get(..8).unwrap_or_default())
    };
    let name = label("name", &body.name.unwrap_or_else(made_up))?;
    let snapshot = Snapshot::new(id, &vm, name, SnapshotOrigin::Asked, now);
    let said = format!("snapshot {} requested", snapshot.name);
    let event = VmEvent::info(&vm, "SnapshotRequested", said, now);
    let within = Some(&app.settings.quotas);
    app.store.insert_snapshot(&snapshot, &[event], within).await?;
    app.conductor.wake_snapshot(id);
    Ok(json(StatusCode::ACCEPTED, &ShownSnapshot::from(&snapshot)))
}

/// `GET /bedplate/v1/machines/{machine}/snapshots`: the snapshots of a VM.
async fn of_machine(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let mut rest = paging.query.clone();
    let page = page(&mut rest)?;
    rest.finish()?;
    let vm = request.machine(&ident).await?;
    let scope = request.visible_vms();
    listed(scope, Some(vm.id), &page, paging.of(&request.app)).await
}

/// Answers with one page of snapshots; only those of one VM, when it is given.
async fn listed(
    scope: VmScope,
    vm: Option<VmUuid>,
    page: &Page<VmSort>,
    at: (&App, &Origin, &str, &Query),
) -> Result<Response> {
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
async fn list(request: Request, paging: ListRequest) -> Result<Response> {
    let mut rest = paging.query.clone();
    let page = page(&mut rest)?;
    rest.finish()?;
    listed(request.visible_vms(), None, &page, paging.of(&request.app)).await
}

/// `GET /bedplate/v1/snapshots/{snapshot}`: one snapshot.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let found = request.snapshot(&ident).await?;
    Ok(json(StatusCode::OK, &ShownSnapshot::from(&found)))
}

/// `DELETE /bedplate/v1/snapshots/{snapshot}`: records the wish. The conductor deletes the image.
async fn delete(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let written = retry_stale(|| async {
        let found = request.snapshot(&ident).await?;
        let change = SnapshotChange { snapshot: found.leaving(), events: Vec::new() };
        Ok(request.app.store.change_snapshot(&change).await?)
    });
    let written = written.await?;
    request.app.conductor.wake_snapshot(written.id);
    Ok(json(StatusCode::ACCEPTED, &ShownSnapshot::from(&written)))
}
