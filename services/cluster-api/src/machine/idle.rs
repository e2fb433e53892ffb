//! `GET /bedplate/v1/machines/idle`: VMs that are lent and idle.

use ::lease::Length;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use cluster_core::{IdleBy, Vm};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, Handle, Origin, Query, Routes, Shape, Time, json, next_link,
};
use serde::Serialize;

use super::{Whose, page};
use crate::app::App;
use crate::error::Error;

pub(super) fn routes() -> Routes<App> {
    let report = Handle::get("List machines that do nothing", report)
        .asks(["limit", "marker", "sort_key", "sort_dir", "user_id", "project_id", "for"])
        .tells(Shape::page("machines", shape()));
    Routes::new("machines").at("/bedplate/v1/machines/idle", [report])
}

fn shape() -> Shape {
    Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
        ("user_id", Shape::text()),
        ("flavor", Shape::text()),
        ("idle_since", Shape::text()),
        ("told_by", Shape::text()),
        ("why", Shape::text()),
        ("seen_at", Shape::text()),
        ("lease_until", Shape::text().or_null()),
    ])
}

#[derive(Serialize)]
struct Shown<'a> {
    uuid: String,
    name: &'a str,
    project_id: &'a str,
    user_id: &'a str,
    flavor: &'a str,
    idle_since: Time,
    /// The source of the finding: `diagnostics` if the hypervisor counts processor time, otherwise `power`.
    told_by: &'static str,
    why: &'static str,
    seen_at: Time,
    lease_until: Option<Time>,
}

impl<'a> Shown<'a> {
    fn of(vm: &'a Vm) -> Option<Shown<'a>> {
        let idle = vm.idle.as_ref()?;
        let (told_by, why) = match idle.by {
            IdleBy::Diagnostics => ("diagnostics", "its processors hardly work"),
            IdleBy::Power => ("power", "it is off"),
        };
        Some(Shown {
            uuid: vm.id.to_string(),
            name: vm.name.as_str(),
            project_id: &vm.project,
            user_id: &vm.user,
            flavor: &vm.flavor.name,
            idle_since: Time(idle.since?),
            told_by,
            why,
            seen_at: Time(idle.at),
            lease_until: vm.lease.as_ref().map(|lease| Time(lease.until)),
        })
    }
}

/// `GET /bedplate/v1/machines/idle?for=&user_id=&project_id=`: the VMs of a page that have been idle for so long. A page without idle VMs
/// can be followed by more pages.
async fn report(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        machines: Vec<Shown<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    let mut rest = query.clone();
    let least = rest.take("for").map(|raw| raw.parse::<Length>()).transpose();
    let least = least.map_err(|why| ApiError::bad_field("for", why))?;
    let whose = Whose::take(&app, &caller, &mut rest)?;
    let page = page(&mut rest)?;
    rest.finish()?;
    let now = (app.clock)();
    let found = app.store.list_vms(&whose.scope, whose.user.as_deref(), &page).await?;
    let last = found.last().filter(|_| found.len() == page.limit as usize);
    let next = last.map(|last| {
        next_link(&origin, uri.path(), &query, page.limit, last.id.into_untyped_uuid())
    });
    let is_long = |vm: &&Vm| {
        let since = vm.idle.as_ref().and_then(|idle| idle.since);
        let lasts = since.map(|since| now.duration_since(since));
        lasts.is_some_and(|lasts| least.is_none_or(|least| least.as_duration() <= lasts))
    };
    let machines = found.iter().filter(is_long).filter_map(Shown::of).collect();
    Ok(json(StatusCode::OK, &Body { machines, next }))
}
