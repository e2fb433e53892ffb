//! `/bedplate/v1/nodes/{node}/explain`: explains why a node is in its state, and what to do next.

use axum::response::Response;
use baremetal_conductor::{LastSeen, TimedObservation};
use baremetal_core::{CurrentTask, Failure, NodeUuid, RackLocation, explain};
use http::StatusCode;
use openstack_api::{JsonShape, PathParam, Route, Routes, Time, json};
use serde::Serialize;

use super::hypervisor;
use crate::app::App;
use crate::error::Error;
use crate::request::Request;
use crate::{microversion, rule};

/// The routes of explanations.
pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Explain a node's state, and what to do next", show)
        .with_rule(rule::READ_DETAILS);
    let show = show.returns(shape());
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/explain", [show])
}

/// The JSON shape of a failure.
pub(crate) fn failure() -> JsonShape {
    JsonShape::object([
        ("reason", JsonShape::text()),
        ("cause", JsonShape::text()),
        ("next_action", JsonShape::text()),
    ])
}

/// The JSON shape of a task.
pub(crate) fn task() -> JsonShape {
    let progress = JsonShape::object([
        ("done_bytes", JsonShape::integer()),
        ("total_bytes", JsonShape::integer().or_null()),
    ]);
    JsonShape::object([
        ("what", JsonShape::text()),
        ("number", JsonShape::integer()),
        ("of", JsonShape::integer()),
        ("since", JsonShape::text()),
        ("progress", progress.or_null()),
    ])
}

/// The JSON shape of an explanation.
fn shape() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let place =
        JsonShape::object([("rack", JsonShape::text()), ("position", JsonShape::integer())]);
    let place = place.maybe([("group", JsonShape::text()), ("role", JsonShape::text())]);
    let sight =
        || JsonShape::object([("at", JsonShape::text()), ("what", JsonShape::text())]).or_null();
    let seen = JsonShape::object([
        ("bmc", sight()),
        ("dhcp", sight()),
        ("tftp", sight()),
        ("http", sight()),
        ("agent", sight()),
    ]);
    JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", maybe()),
        ("place", place.or_null()),
        ("provision_state", JsonShape::text()),
        ("target_provision_state", maybe()),
        ("power_state", maybe()),
        ("since", JsonShape::text()),
        ("summary", JsonShape::text()),
        ("task", task().or_null()),
        ("failure", failure().or_null()),
        ("hypervisor", hypervisor::shape().or_null()),
        ("last_seen", seen),
        ("next", JsonShape::text()),
    ])
}

#[derive(Serialize)]
struct Body<'a> {
    uuid: NodeUuid,
    name: Option<&'a str>,
    place: Option<&'a RackLocation>,
    provision_state: &'static str,
    target_provision_state: Option<&'static str>,
    power_state: Option<hardware::PowerState>,
    since: Time,
    summary: String,
    task: Option<Task>,
    failure: Option<&'a Failure>,
    hypervisor: Option<hypervisor::View<'a>>,
    last_seen: LastSeenView,
    next: String,
}

#[derive(Serialize)]
struct Task {
    what: &'static str,
    number: usize,
    of: usize,
    since: Time,
    progress: Option<agent_protocol::Progress>,
}

#[derive(Serialize)]
struct LastSeenView {
    bmc: Option<ObservationView>,
    dhcp: Option<ObservationView>,
    tftp: Option<ObservationView>,
    http: Option<ObservationView>,
    agent: Option<ObservationView>,
}

#[derive(Serialize)]
struct ObservationView {
    at: Time,
    what: String,
}

impl From<TimedObservation> for ObservationView {
    fn from(TimedObservation { at, what }: TimedObservation) -> Self {
        ObservationView { at: Time(at), what }
    }
}

impl From<LastSeen> for LastSeenView {
    fn from(seen: LastSeen) -> Self {
        LastSeenView {
            bmc: seen.bmc.map(ObservationView::from),
            dhcp: seen.dhcp.map(ObservationView::from),
            tftp: seen.tftp.map(ObservationView::from),
            http: seen.http.map(ObservationView::from),
            agent: seen.agent.map(ObservationView::from),
        }
    }
}

/// `GET /bedplate/v1/nodes/{node}/explain`: explains the state of a node.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response, Error> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let told = explain(&node);
    let task = |CurrentTask { what, number, of, since }| Task {
        what,
        number,
        of,
        since: Time(since),
        progress: request.app.conductor.progress(node.id),
    };
    let body = Body {
        uuid: node.id,
        name: node.name.as_ref().map(|name| name.as_str()),
        place: node.place.as_ref(),
        provision_state: node.provision_state.as_str(),
        target_provision_state: node.leads_to().map(|state| state.as_str()),
        power_state: node.power_state,
        since: Time(told.since),
        summary: told.summary,
        task: told.task.map(task),
        failure: told.failure.as_ref(),
        hypervisor: hypervisor::View::of(&node),
        last_seen: request.app.conductor.last_seen(node.id).into(),
        next: told.next,
    };
    Ok(json(StatusCode::OK, &body))
}
