//! `/bedplate/v1/nodes/{node}/hypervisor`: the compute host that a node is or will become.

use axum::response::Response;
use baremetal_core::{Hypervisor, Node, join_again};
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, PathParam, Route, Routes, Shaped, Time, json, shaped};
use serde::Serialize;
use tracing::info;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Show the hypervisor of a node", show)
        .with_rule(rule::READ_DETAILS)
        .returns(View::shape());
    let join = Route::put("Join a node to the cloud again", join)
        .with_rule(rule::OPERATE)
        .answers(StatusCode::ACCEPTED)
        .returns(View::shape());
    Routes::new("bedplate")
        .at("/bedplate/v1/nodes/{node}/hypervisor", [show])
        .at("/bedplate/v1/nodes/{node}/hypervisor/join", [join])
}

/// The states of a hypervisor.
const STATES: [&str; 10] = [
    "installing",
    "awaiting_service",
    "awaiting_hypervisor",
    "awaiting_provider",
    "zoning",
    "grouping",
    "enabling",
    "joined",
    "failed",
    "leaving",
];

shaped! {
    /// A hypervisor in the form that operators see.
    #[derive(Serialize)]
    pub(super) struct View<'a> {
        profile: &'a str,
        host: &'a str,
        /// The id of the hypervisor in Nova.
        id: Option<&'a str>,
        availability_zone: Option<&'a str>,
        aggregate: Option<&'a str>,
        state: &'static str = JsonShape::enumeration(STATES),
        since: Time,
        joined_at: Option<Time>,
    }
}

impl<'a> View<'a> {
    /// The hypervisor of the node; `None` if the node neither is nor becomes a hypervisor.
    pub(super) fn of(node: &'a Node) -> Option<View<'a>> {
        node.hypervisor.as_ref().map(View::new)
    }

    fn new(hypervisor: &'a Hypervisor) -> Self {
        View {
            profile: &hypervisor.profile,
            host: &hypervisor.host,
            id: hypervisor.id.as_deref(),
            availability_zone: hypervisor.availability_zone.as_deref(),
            aggregate: hypervisor.aggregate.as_deref(),
            state: hypervisor.state.as_str(),
            since: Time(hypervisor.since),
            joined_at: Time::some(hypervisor.joined_at()),
        }
    }
}

fn shown(status: StatusCode, node: &Node) -> Result<Response> {
    let none = || ApiError::not_found(format!("Node {} is not a hypervisor.", node.label()));
    Ok(json(status, &View::of(node).ok_or_else(none)?))
}

/// `GET /bedplate/v1/nodes/{node}/hypervisor`: shows the hypervisor of a node.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    shown(StatusCode::OK, &request.node_at(microversion::MAXIMUM, &ident).await?)
}

/// `PUT /bedplate/v1/nodes/{node}/hypervisor/join`: starts joining the cloud again from the first check, whatever the result before.
async fn join(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let now = (request.app.clock)();
    let decide = |node: &Node| Ok(join_again(node, now)?);
    let node = request.change_at(microversion::MAXIMUM, &ident, decide).await?;
    info!(node.id = %node.id, "node {} joins the cloud again", node.label());
    request.app.conductor.wake(node.id);
    shown(StatusCode::ACCEPTED, &node)
}
