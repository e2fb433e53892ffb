//! `GET /bedplate/v1/machines/idle`: VMs that are lent and idle.

use ::lease::Length;
use std::sync::Arc;

use axum::response::Response;
use cluster_core::{IdleSource, Vm};
use openstack_api::{
    ApiError, JsonShape, ListPart, ListRequest, Route, Routes, Shaped, Time, shaped,
};
use serde::Serialize;

use super::list_query::{VmFilter, page};
use crate::app::App;
use crate::error::Result;
use crate::listing::list_of;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let report = Route::get("List idle VMs", report)
        .query_parameters([
            "limit",
            "marker",
            "sort_key",
            "sort_dir",
            "user_id",
            "project_id",
            "for",
        ])
        .returns(JsonShape::page("machines", Shown::shape()));
    Routes::new("machines").at("/bedplate/v1/machines/idle", [report])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        uuid: String,
        name: &'a str,
        project_id: &'a str,
        user_id: &'a str,
        flavor: &'a str,
        idle_since: Time,
        /// The source of the finding: `diagnostics` if the hypervisor counts processor time, otherwise `power`.
        source: &'static str,
        why: &'static str,
        seen_at: Time,
        lease_until: Option<Time>,
    }
}

impl<'a> Shown<'a> {
    fn of(vm: &'a Vm) -> Option<Shown<'a>> {
        let idle = vm.idle.as_ref()?;
        let (source, why) = match idle.by {
            IdleSource::Diagnostics => ("diagnostics", "low processor usage"),
            IdleSource::Power => ("power", "powered off"),
        };
        Some(Shown {
            uuid: vm.id.to_string(),
            name: vm.name.as_str(),
            project_id: &vm.project,
            user_id: &vm.user,
            flavor: &vm.flavor.name,
            idle_since: Time(idle.since?),
            source,
            why,
            seen_at: Time(idle.at),
            lease_until: vm.lease.as_ref().map(|lease| Time(lease.until)),
        })
    }
}

/// `GET /bedplate/v1/machines/idle?for=&user_id=&project_id=`: the VMs of a page that have been idle for so long. A page without idle VMs
/// can be followed by more pages.
async fn report(request: Request, paging: ListRequest) -> Result<Response> {
    let mut rest = paging.query.clone();
    let least = rest.take("for").map(|raw| raw.parse::<Length>()).transpose();
    let least = least.map_err(|why| ApiError::bad_field("for", why))?;
    let whose = VmFilter::take(&request, &mut rest)?;
    let page = page(&mut rest)?;
    rest.finish()?;
    let now = (request.app.clock)();
    let is_long = move |vm: &&Vm| {
        let since = vm.idle.as_ref().and_then(|idle| idle.since);
        let lasts = since.map(|since| now.duration_since(since));
        lasts.is_some_and(|lasts| least.is_none_or(|least| least.as_duration() <= lasts))
    };
    let reader = Arc::new((request.app.store.clone(), whose));
    list_of("machines", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, VmFilter { scope, user }) = &*reader;
            let listed = store.list_vms_part(scope, user.as_deref(), &page, part).await?;
            let idle = listed.found.iter().filter(is_long).filter_map(Shown::of);
            let read = listed.found.last().map(|last| (listed.found.len(), last.id));
            Ok(ListPart::chosen(idle, read, listed.more)?)
        })
    })
    .await
}
