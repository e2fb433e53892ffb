//! `POST /bedplate/v1/machines/{machine}/actions`: start, stop, reboot and resize.

use axum::extract::State;
use axum::response::Response;
use cluster_core::{VmActionKind, VmEvent};
use http::StatusCode;
use openstack_api::{Caller, PathParam, Route, Routes, StrictJson};
use utoipa::PartialSchema;

use super::body::Action;
use super::view;
use crate::app::App;
use crate::error::Error;

pub(super) fn routes() -> Routes<App> {
    let act = Route::post("Run an action on a VM", act)
        .reads(Action::schema())
        .answers(StatusCode::ACCEPTED)
        .returns(view::shape())
        .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]);
    Routes::new("machines").at("/bedplate/v1/machines/{machine}/actions", [act])
}

async fn act(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Action>,
) -> Result<Response, Error> {
    // A caller who may not see the VM gets 404 before the flavor is looked up.
    let there = app.machine(&caller, &ident).await?;
    let kind = match body {
        Action::Start {} => VmActionKind::Start,
        Action::Stop {} => VmActionKind::Stop,
        Action::Reboot { hard: false } => VmActionKind::RebootSoft,
        Action::Reboot { hard: true } => VmActionKind::RebootHard,
        Action::Resize { flavor } => {
            VmActionKind::Resize(app.conductor.vm_flavor(&there.project, &flavor).await?)
        }
    };
    let vm = app
        .change_vm(&caller, &ident, |vm| {
            let now = (app.clock)();
            let event = VmEvent::info(vm, "ErrandAsked", format!("requested: {kind}"), now);
            Ok((vm.with_errand(kind.clone(), now)?, event))
        })
        .await?;
    Ok(app.shown(StatusCode::ACCEPTED, &vm))
}
