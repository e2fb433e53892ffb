//! `/bedplate/v1/machines`: VMs.
//!
//! A user sees their own VMs, managers and administrators of a project see all VMs of the project, administrators of the cloud see all.

mod actions;
mod body;
mod change;
mod console;
mod create;
mod idle;
mod images;
mod lease;
mod list_query;
mod snapshots;
mod view;
mod visible;

use std::sync::Arc;

use axum::response::Response;
use cluster_core::VmEvent;
use cluster_store::{PagePart, PageRows};
use http::StatusCode;
use openstack_api::{
    JsonShape, ListPart, ListRequest, Listing, PathParam, Query, Route, Routes, Shaped,
};
use utoipa::PartialSchema;

use crate::app::App;
use crate::error::{Error, Result};
use crate::event;
use crate::listing::list_of;
use crate::request::Request;
use body::NewVm;
use list_query::{VmFilter, page};
use view::View;

/// Returns the routes of VMs, their snapshots and their images.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List VMs", list)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "user_id", "project_id"])
            .returns(JsonShape::page("machines", view::View::shape())),
        Route::post("Create a VM", create::create)
            .reads(NewVm::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(view::View::shape())
            .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]),
    ];
    let one = [
        Route::get("Show a VM", show).returns(view::View::shape()),
        Route::delete("Delete a VM", delete)
            .answers(StatusCode::ACCEPTED)
            .returns(view::View::shape()),
    ];
    Routes::new("machines")
        .at("/bedplate/v1/machines", all)
        // This route comes before the routes with a VM's name, so no VM can be named `idle`.
        .merge(idle::routes())
        .at("/bedplate/v1/machines/{machine}", one)
        .at(
            "/bedplate/v1/machines/{machine}/events",
            [Route::get("List a VM's events", events)
                .query_parameters(["limit", "marker"])
                .returns(JsonShape::object([("events", JsonShape::list(event::Shown::shape()))]))],
        )
        .merge(lease::routes())
        .merge(actions::routes())
        .merge(console::routes())
        .merge(snapshots::routes())
        .merge(images::routes())
}

/// `GET /bedplate/v1/machines?user_id=&project_id=`: a page of VMs.
async fn list(request: Request, paging: ListRequest) -> Result<Response> {
    let app = &request.app;
    let mut rest = paging.query.clone();
    let whose = VmFilter::take(&request, &mut rest)?;
    let page = page(&mut rest)?;
    rest.finish()?;
    let reader = Arc::new((app.clone(), whose));
    list_of("machines", &page, paging.of(app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (app, VmFilter { scope, user }) = &*reader;
            let listed = app.store.list_vms_part(scope, user.as_deref(), &page, part).await?;
            let (schedule, now) = (&app.settings.machines.schedule, (app.clock)());
            let view = |vm| View::of(vm, schedule, now);
            Ok(ListPart::of(&listed.found, |vm| vm.id, view, listed.more)?)
        })
    })
    .await
}

/// `GET /bedplate/v1/machines/{machine}`: one VM.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let vm = request.machine(&ident).await?;
    Ok(request.app.shown(StatusCode::OK, &vm))
}

/// `DELETE /bedplate/v1/machines/{machine}`: records the wish. The VM is shown until all its cloud objects are gone.
async fn delete(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let vm = request
        .change_vm(&ident, |vm| {
            let now = (request.app.clock)();
            Ok((
                vm.to_be_deleted(now),
                VmEvent::info(vm, "DeleteRequested", "deletion requested", now),
            ))
        })
        .await?;
    Ok(request.app.shown(StatusCode::ACCEPTED, &vm))
}

/// `GET /bedplate/v1/machines/{machine}/events?limit=&marker=`: the events of a VM, the oldest first.
async fn events(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let (limit, marker) = event::page(&mut query)?;
    query.finish()?;
    let vm = request.machine(&ident).await?.id;
    let store = request.app.store.clone();
    let page = Listing { limit, ..Listing::whole("events") };
    openstack_api::list(page, move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.vm_events_part_of(vm, asked.elements, marker, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |event| event.at, event::Shown::from, more)?)
        })
    })
    .await
}
