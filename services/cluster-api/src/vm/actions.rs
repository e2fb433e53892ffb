//! `POST /bedplate/v1/machines/{machine}/actions`: start, stop, reboot and resize.

use axum::response::Response;
use cluster_core::{VmActionKind, VmEvent};
use http::StatusCode;
use openstack_api::{PathParam, Route, Routes, Shaped, StrictJson};
use utoipa::PartialSchema;

use super::body::Action;
use super::view;
use crate::app::App;
use crate::error::Result;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let act = Route::post("Run an action on a VM", act)
        .reads(Action::schema())
        .answers(StatusCode::ACCEPTED)
        .returns(view::View::shape())
        .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]);
    Routes::new("machines").at("/bedplate/v1/machines/{machine}/actions", [act])
}

async fn act(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Action>,
) -> Result<Response> {
    // A caller who may not see the VM gets 404 before the flavor is looked up.
    let there = request.machine(&ident).await?;
    let kind = match body {
        Action::Start {} => VmActionKind::Start,
        Action::Stop {} => VmActionKind::Stop,
        Action::Reboot { hard: false } => VmActionKind::RebootSoft,
        Action::Reboot { hard: true } => VmActionKind::RebootHard,
        Action::Resize { flavor } => {
            VmActionKind::Resize(request.app.conductor.vm_flavor(&there.project, &flavor).await?)
        }
    };
    let vm = request
        .change_vm(&ident, |vm| {
            let now = (request.app.clock)();
            let event = VmEvent::info(vm, "ActionRequested", format!("requested: {kind}"), now);
            Ok((vm.with_action(kind.clone(), now)?, event))
        })
        .await?;
    Ok(request.app.shown(StatusCode::ACCEPTED, &vm))
}
