//! `/bedplate/v1/machines/{machine}/lease`: extends the lease of a VM, and undoes its end.

use ::lease::{ExtendError, Lease, UndoError};
use axum::response::Response;
use cluster_core::{Owner, Vm, VmEvent};
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{ApiError, PathParam, Route, Routes, Shaped, StrictJson};
use utoipa::PartialSchema;

use super::body::Extension;
use super::view;
use crate::app::App;
use crate::error::Result;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let extend = Route::put("Extend the lease of a VM", extend)
        .reads(Extension::schema())
        .returns(view::View::shape());
    let undo = Route::post("Undo the end of a VM's lease", undo)
        .answers(StatusCode::ACCEPTED)
        .returns(view::View::shape());
    Routes::new("machines")
        .at("/bedplate/v1/machines/{machine}/lease", [extend])
        .at("/bedplate/v1/machines/{machine}/lease/undo", [undo])
}

/// `PUT /bedplate/v1/machines/{machine}/lease`: extends the lease. A duration counts from now.
async fn extend(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Extension>,
) -> Result<Response> {
    let app = &request.app;
    let owner = owner(&request.machine(&ident).await?);
    let (terms, by) = (app.lease_terms(app.settings.machines.terms, &owner).await?, request.user());
    let change = request.change_vm(&ident, |vm| {
        let now = (app.clock)();
        let until = body.until(terms, now)?;
        let lease = lease_of(vm)?.extended(until, &by, terms, now).map_err(extend_refusal)?;
        let said = format!("lease extended until {}", lease.until);
        Ok(with_lease(vm, lease, "LeaseExtended", said, now))
    });
    Ok(app.shown(StatusCode::OK, &change.await?))
}

/// `POST /bedplate/v1/machines/{machine}/lease/undo`: undoes the end of the lease and switches the VM on again.
async fn undo(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let app = &request.app;
    let owner = owner(&request.machine(&ident).await?);
    let (terms, by) = (app.lease_terms(app.settings.machines.terms, &owner).await?, request.user());
    let schedule = &app.settings.machines.schedule;
    let change = request.change_vm(&ident, |vm| {
        let now = (app.clock)();
        let lease = lease_of(vm)?.undone(&by, schedule, terms, now).map_err(undo_refusal)?;
        let said = format!("end of the lease undone: the lease lasts until {}", lease.until);
        Ok(with_lease(vm, lease, "LeaseUndone", said, now))
    });
    Ok(app.shown(StatusCode::ACCEPTED, &change.await?))
}

/// The VM with another lease, and the event of the change.
fn with_lease(vm: &Vm, lease: Lease, reason: &str, said: String, now: Timestamp) -> (Vm, VmEvent) {
    let event = VmEvent::info(vm, reason, said, now);
    (Vm { lease: Some(lease), updated_at: Some(now), ..vm.clone() }, event)
}

fn owner(vm: &Vm) -> Owner {
    Owner::new(&vm.project, &vm.user)
}

fn lease_of(vm: &Vm) -> Result<&Lease, ApiError> {
    let lent = vm.lease.as_ref();
    lent.ok_or_else(|| ApiError::conflict("the VM has no lease to extend"))
}

fn extend_refusal(why: ExtendError) -> ApiError {
    match why {
        ExtendError::InThePast { .. } | ExtendError::TooShort { .. } => {
            ApiError::bad_field("until", why)
        }
        ExtendError::TooLong { .. } => ApiError::new(StatusCode::FORBIDDEN, why.to_string()),
        ExtendError::TooLate => ApiError::conflict(why.to_string()),
    }
}

fn undo_refusal(why: UndoError) -> ApiError {
    match why {
        UndoError::NotEnded | UndoError::TooLate => ApiError::conflict(why.to_string()),
    }
}
