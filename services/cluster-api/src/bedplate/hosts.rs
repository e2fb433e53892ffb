//! `/bedplate/v1/hosts` and `/bedplate/v1/places`: the servers on a compute host, and the host of a server.

mod view;

use axum::response::Response;
use cluster_core::HostName;
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, PathParam, Role as Needed, Route, Routes, Rule, Shaped, json,
};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use view::{HostList, HostView, PlaceList};

/// Permits administrators of the cloud, and services that manage its nodes.
pub(super) const RULE: Rule =
    Rule { cloud: Needed::Admin, services: true, owner: None, lessee: None };

/// Returns the routes of hosts and places.
pub(crate) fn routes() -> Routes<App> {
    let hosts = JsonShape::object([("hosts", JsonShape::list(view::ListedHost::shape()))]);
    let list =
        Route::get("List compute hosts and their drains", list).with_rule(RULE).returns(hosts);
    let show = Route::get("Show the servers on a compute host", show)
        .with_rule(RULE)
        .returns(view::HostView::shape());
    let places = JsonShape::object([("places", JsonShape::list(view::Place::shape()))]);
    let find = Route::get("Find the hosts of a cluster, VM or server", find)
        .with_rule(RULE)
        .returns(places);
    Routes::new("bedplate")
        .at("/bedplate/v1/hosts", [list.refuses([StatusCode::CONFLICT])])
        .at(
            "/bedplate/v1/hosts/{host}",
            [show.refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT])],
        )
        .at("/bedplate/v1/places/{thing}", [find.refuses([StatusCode::CONFLICT])])
}

/// Parses the name of a host in a path. An invalid name is answered like a missing host.
pub(super) fn host_name(raw: &str) -> Result<HostName, ApiError> {
    raw.parse().map_err(|_| crate::request::missing("Host", raw))
}

/// `GET /bedplate/v1/hosts`: every compute host of the cloud, with its drain.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let services = app.conductor.hosts().await?;
    let drains = app.store.drains().await?;
    Ok(json(StatusCode::OK, &HostList::new(&services, &drains)))
}

/// `GET /bedplate/v1/hosts/{host}`: the members and VMs on a host, and only the number of other servers.
async fn show(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<Response> {
    let host = app.conductor.host(&host_name(&name)?).await?;
    let drain = app.store.find_drain(&host.name).await?;
    Ok(json(StatusCode::OK, &HostView::new(&host, drain.as_ref())))
}

/// `GET /bedplate/v1/places/{thing}`: the hosts of a cluster, a VM or a server, by id or name. Lists everything that has this name.
async fn find(
    Request { app, .. }: Request,
    PathParam(thing): PathParam<String>,
) -> Result<Response> {
    let found = app.conductor.places(&thing).await?;
    Ok(json(StatusCode::OK, &PlaceList::new(&found)))
}
