//! `/bedplate/v1/machines`: VMs.
//!
//! A user sees their own VMs, managers and administrators of a project see all VMs of the project, administrators of the cloud see all.

mod actions;
mod body;
mod console;
mod create;
mod idle;
mod images;
mod lease;
mod snapshots;
mod view;

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use cluster_core::{Ident, Page, Vm, VmEvent, VmRefusal, VmSort};
use cluster_store::{PagePart, PageRows, Scope, VmChange, VmScope};
use http::StatusCode;
use openstack_api::{
    AccessScope, ApiError, Caller, Direction, JsonShape, ListPart, Listing, Origin, Paging,
    PathParam, Query, Role, Route, Routes, Time, json,
};
use serde::Serialize;
use utoipa::PartialSchema;

use crate::app::{App, may_see_project, missing, other_project_refusal, retry_stale};
use crate::error::Error;
use crate::listing::list_of;
use body::NewVm;
use view::View;

/// Returns the routes of VMs, their snapshots and their images.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List VMs", list)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "user_id", "project_id"])
            .returns(JsonShape::page("machines", view::shape())),
        Route::post("Create a VM", create::create)
            .reads(NewVm::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(view::shape())
            .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]),
    ];
    let one = [
        Route::get("Show a VM", show).returns(view::shape()),
        Route::delete("Delete a VM", delete).answers(StatusCode::ACCEPTED).returns(view::shape()),
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
                .returns(JsonShape::object([(
                    "events",
                    JsonShape::list(crate::bedplate::event_shape()),
                )]))],
        )
        .merge(lease::routes())
        .merge(actions::routes())
        .merge(console::routes())
        .merge(snapshots::routes())
        .merge(images::routes())
}

impl App {
    /// The VMs of `scope` that the caller may see.
    fn vm_scope(&self, caller: &Caller, scope: Scope) -> VmScope {
        let manages = caller.role() >= Some(Role::Manager);
        match (scope, caller.access_scope()) {
            (Scope::All, _) => VmScope::All,
            (Scope::Project(project), AccessScope::Project(_)) if !manages => {
                VmScope::Person { project, user: self.user(caller) }
            }
            (Scope::Project(project), _) => VmScope::Project(project),
        }
    }

    /// The VMs that the caller may see.
    pub(crate) fn visible_vms(&self, caller: &Caller) -> VmScope {
        self.vm_scope(caller, self.scope(caller))
    }

    /// The scopes in which names of VMs are looked up, in this order: the caller's own project first.
    pub(crate) fn vm_scopes(&self, caller: &Caller) -> Vec<VmScope> {
        let scopes = self.scopes(caller).into_iter();
        scopes.map(|scope| self.vm_scope(caller, scope)).collect()
    }

    /// Finds the VM with this id or name. A VM that the caller may not see is answered like a missing one.
    pub(crate) async fn machine(&self, caller: &Caller, ident: &str) -> Result<Vm, Error> {
        let missing = || missing("VM", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.vm_scopes(caller) {
            let mut found = self.store.find_vms(&parsed, &scope).await?.into_iter();
            match (found.next(), found.next()) {
                (Some(_), Some(_)) if scope == VmScope::All => {
                    let why = format!("several projects have a VM {ident}: use its id");
                    return Err(ApiError::conflict(why).into());
                }
                (Some(found), _) => return Ok(found),
                (None, _) => {}
            }
        }
        Err(missing().into())
    }

    /// Reads a VM, lets `decide` change it, writes the change and wakes the conductor.
    ///
    /// Starts again if someone else changed the VM meanwhile. Refuses a change that exceeds the quota or the maximum lease of the VM's
    /// project or owner.
    pub(crate) async fn change_vm(
        &self,
        caller: &Caller,
        ident: &str,
        decide: impl Fn(&Vm) -> Result<(Vm, VmEvent), Error>,
    ) -> Result<Vm, Error> {
        let written = retry_stale(|| async {
            let vm = self.machine(caller, ident).await?;
            let (vm, event) = decide(&vm)?;
            let change = VmChange { events: vec![event], ..VmChange::of(vm) };
            let written = self.store.change_vm_within(&change, &self.settings.quotas).await?;
            written.map_err(|denial| Error::Denied(denial, None))
        });
        let written = written.await?;
        self.conductor.wake_vm(written.id);
        Ok(written)
    }

    /// Responds with a VM.
    pub(crate) fn shown(&self, status: StatusCode, vm: &Vm) -> Response {
        json(status, &View::of(vm, &self.settings.machines.ladder, (self.clock)()))
    }
}

/// `GET /bedplate/v1/machines?user_id=&project_id=`: a page of VMs.
async fn list(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let whose = VmFilter::take(&app, &caller, &mut rest)?;
    let page = page(&mut rest)?;
    rest.finish()?;
    let reader = Arc::new((app.clone(), whose));
    list_of("machines", &page, (&app, &origin, uri.path(), &query), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (app, VmFilter { scope, user }) = &*reader;
            let listed = app.store.list_vms_part(scope, user.as_deref(), &page, part).await?;
            let (ladder, now) = (&app.settings.machines.ladder, (app.clock)());
            let view = |vm| View::of(vm, ladder, now);
            Ok(ListPart::of(&listed.found, |vm| vm.id, view, listed.more)?)
        })
    })
    .await
}

/// The VMs that a list contains.
pub(super) struct VmFilter {
    pub(super) scope: VmScope,
    pub(super) user: Option<String>,
}

impl VmFilter {
    /// Takes `user_id` and `project_id` out of `query`. Only managers of the project and administrators of the cloud see the VMs of others.
    pub(super) fn take(
        app: &App,
        caller: &Caller,
        query: &mut Query,
    ) -> Result<VmFilter, ApiError> {
        let given = |text: &String| !text.is_empty();
        let mut scope = app.visible_vms(caller);
        if let Some(project) = query.take("project_id").filter(given) {
            if !may_see_project(caller, &project) && app.project(caller)? != project {
                return Err(other_project_refusal("project_id"));
            }
            scope = app.vm_scope(caller, Scope::Project(project));
        }
        let user = query.take("user_id").filter(given);
        if let (VmScope::Person { user: own, .. }, Some(user)) = (&scope, &user)
            && own != user
        {
            let why = "user_id: only managers of the project may see the VMs of other users";
            return Err(ApiError::new(StatusCode::FORBIDDEN, why));
        }
        Ok(VmFilter { scope, user })
    }
}

/// Reads the page and the order of a list.
pub(super) fn page(query: &mut Query) -> Result<Page<VmSort>, ApiError> {
    let paging = Paging::take(query)?;
    let sort = match paging.sort_key.as_deref() {
        None | Some("created_at") => VmSort::CreatedAt,
        Some("id" | "uuid") => VmSort::Id,
        Some("name") => VmSort::Name,
        Some(_) => {
            return Err(ApiError::bad_field("sort_key", "must be created_at, id or name"));
        }
    };
    let descending = paging.direction == Direction::Descending;
    Ok(Page { limit: paging.limit, marker: paging.marker, sort, descending })
}

/// `GET /bedplate/v1/machines/{machine}`: one VM.
async fn show(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let vm = app.machine(&caller, &ident).await?;
    Ok(app.shown(StatusCode::OK, &vm))
}

/// `DELETE /bedplate/v1/machines/{machine}`: records the wish. The VM is shown until all its cloud objects are gone.
async fn delete(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let vm = app
        .change_vm(&caller, &ident, |vm| {
            let now = (app.clock)();
            Ok((vm.to_be_deleted(now), VmEvent::info(vm, "DeleteAsked", "deletion requested", now)))
        })
        .await?;
    Ok(app.shown(StatusCode::ACCEPTED, &vm))
}

/// `GET /bedplate/v1/machines/{machine}/events?limit=&marker=`: the events of a VM, the oldest first.
async fn events(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: Option<String>,
        at: Time,
        severity: &'static str,
        reason: &'a str,
        message: &'a str,
    }
    let (limit, marker) = crate::bedplate::events_page(&mut query)?;
    query.finish()?;
    let vm = app.machine(&caller, &ident).await?.id;
    let store = app.store.clone();
    let page = Listing { limit, ..Listing::whole("events") };
    openstack_api::list(page, move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.vm_events_part_of(vm, asked.elements, marker, part).await?;
            let part = ListPart::of(
                &found,
                |event| event.at,
                |VmEvent { id, at, severity, reason, message, .. }| Shown {
                    id: id.map(|id| id.to_string()),
                    at: Time(*at),
                    severity: severity.as_str(),
                    reason,
                    message,
                },
                more,
            );
            Ok::<_, Error>(part?)
        })
    })
    .await
}

/// The status of a refused change: 400 if the caller has to change the request, 409 if the same request may succeed later.
pub(crate) fn refused(why: &VmRefusal) -> StatusCode {
    match why {
        VmRefusal::TooSmall(_) | VmRefusal::Shrinks { .. } => StatusCode::BAD_REQUEST,
        VmRefusal::Volume
        | VmRefusal::Deleting
        | VmRefusal::Expired
        | VmRefusal::Busy(_)
        | VmRefusal::State(_) => StatusCode::CONFLICT,
    }
}
