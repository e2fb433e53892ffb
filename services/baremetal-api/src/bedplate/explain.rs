//! `/bedplate/v1/nodes/{node}/explain`: explains why a node is in its state, and what to do next.

use axum::extract::State;
use axum::response::Response;
use baremetal_conductor::{LastSeen, Sighting};
use baremetal_core::{CurrentTask, Failure, NodeUuid, Place, explain};
use http::StatusCode;
use openstack_api::{Caller, Handle, Routes, Segment, Shape, Time, json};
use serde::Serialize;

use super::hypervisor;
use crate::app::App;
use crate::error::Error;
use crate::{microversion, rule};

/// The routes of explanations.
pub(crate) fn routes() -> Routes<App> {
    let show =
        Handle::get("Explain a node's state, and what to do next", show).ruled(rule::SEE_INSIDE);
    let show = show.tells(shape());
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/explain", [show])
}

/// The JSON shape of a failure.
pub(crate) fn failure() -> Shape {
    Shape::object([
        ("reason", Shape::text()),
        ("cause", Shape::text()),
        ("next_action", Shape::text()),
    ])
}

/// The JSON shape of a task.
pub(crate) fn task() -> Shape {
    let progress =
        Shape::object([("done_bytes", Shape::whole()), ("total_bytes", Shape::whole().or_null())]);
    Shape::object([
        ("what", Shape::text()),
        ("number", Shape::whole()),
        ("of", Shape::whole()),
        ("since", Shape::text()),
        ("progress", progress.or_null()),
    ])
}

/// The JSON shape of an explanation.
fn shape() -> Shape {
    let maybe = || Shape::text().or_null();
    let place = Shape::object([("rack", Shape::text()), ("position", Shape::whole())]);
    let place = place.maybe([("group", Shape::text()), ("role", Shape::text())]);
    let sight = || Shape::object([("at", Shape::text()), ("what", Shape::text())]).or_null();
    let seen = Shape::object([
        ("bmc", sight()),
        ("dhcp", sight()),
        ("tftp", sight()),
        ("http", sight()),
        ("agent", sight()),
    ]);
    Shape::object([
        ("uuid", Shape::text()),
        ("name", maybe()),
        ("place", place.or_null()),
        ("provision_state", Shape::text()),
        ("target_provision_state", maybe()),
        ("power_state", maybe()),
        ("since", Shape::text()),
        ("summary", Shape::text()),
        ("task", task().or_null()),
        ("failure", failure().or_null()),
        ("hypervisor", hypervisor::shape().or_null()),
        ("last_seen", seen),
        ("next", Shape::text()),
    ])
}

#[derive(Serialize)]
struct Body<'a> {
    uuid: NodeUuid,
    name: Option<&'a str>,
    place: Option<&'a Place>,
    provision_state: &'static str,
    target_provision_state: Option<&'static str>,
    power_state: Option<hardware::PowerState>,
    since: Time,
    summary: String,
    task: Option<Task>,
    failure: Option<&'a Failure>,
    hypervisor: Option<hypervisor::View<'a>>,
    last_seen: Seen,
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
struct Seen {
    bmc: Option<Sight>,
    dhcp: Option<Sight>,
    tftp: Option<Sight>,
    http: Option<Sight>,
    agent: Option<Sight>,
}

#[derive(Serialize)]
struct Sight {
    at: Time,
    what: String,
}

impl From<Sighting> for Sight {
    fn from(Sighting { at, what }: Sighting) -> Self {
        Sight { at: Time(at), what }
    }
}

impl From<LastSeen> for Seen {
    fn from(seen: LastSeen) -> Self {
        Seen {
            bmc: seen.bmc.map(Sight::from),
            dhcp: seen.dhcp.map(Sight::from),
            tftp: seen.tftp.map(Sight::from),
            http: seen.http.map(Sight::from),
            agent: seen.agent.map(Sight::from),
        }
    }
}

/// `GET /bedplate/v1/nodes/{node}/explain`: explains the state of a node.
async fn show(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    let node = app.node(&caller, microversion::MAXIMUM, &ident).await?;
    let told = explain(&node);
    let task = |CurrentTask { what, number, of, since }| Task {
        what,
        number,
        of,
        since: Time(since),
        progress: app.conductor.progress(node.id),
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
        last_seen: app.conductor.last_seen(node.id).into(),
        next: told.next,
    };
    Ok(json(StatusCode::OK, &body))
}
