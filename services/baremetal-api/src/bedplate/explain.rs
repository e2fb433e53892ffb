//! `/bedplate/v1/nodes/{node}/explain`: explains why a node is in its state, and what to do next.

use axum::response::Response;
use baremetal_conductor::{LastSeen, TimedObservation};
use baremetal_core::{CurrentTask, Failure, NodeUuid, RackLocation, explain};
use http::StatusCode;
use openstack_api::{JsonShape, PathParam, Route, Routes, Shaped, Time, json, shaped};
use serde::Serialize;

use super::hypervisor;
use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Explain a node's state, and what to do next", show)
        .with_rule(rule::READ_DETAILS);
    let show = show.returns(Body::shape());
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/explain", [show])
}

pub(crate) fn failure() -> JsonShape {
    JsonShape::object([
        ("reason", JsonShape::text()),
        ("cause", JsonShape::text()),
        ("next_action", JsonShape::text()),
    ])
}

fn progress() -> JsonShape {
    JsonShape::object([
        ("done_bytes", JsonShape::integer()),
        ("total_bytes", JsonShape::integer().or_null()),
    ])
}

/// The JSON shape of the place of a node in its rack.
fn place() -> JsonShape {
    let place =
        JsonShape::object([("rack", JsonShape::text()), ("position", JsonShape::integer())]);
    place.maybe([("group", JsonShape::text()), ("role", JsonShape::text())])
}

shaped! {
    #[derive(Serialize)]
    struct Body<'a> {
        uuid: NodeUuid,
        name: Option<&'a str>,
        place: Option<&'a RackLocation> = place().or_null(),
        provision_state: &'static str,
        target_provision_state: Option<&'static str>,
        power_state: Option<hardware::PowerState> = JsonShape::text().or_null(),
        since: Time,
        summary: String,
        task: Option<Task>,
        failure: Option<&'a Failure> = failure().or_null(),
        hypervisor: Option<hypervisor::View<'a>>,
        last_seen: LastSeenView,
        next: String,
    }
}

shaped! {
    /// A task in the form that clients see.
    #[derive(Serialize)]
    pub(crate) struct Task {
        what: String,
        number: usize,
        of: usize,
        since: Time,
        progress: Option<agent_protocol::Progress> = progress().or_null(),
    }
}

impl Task {
    pub(crate) fn new(task: CurrentTask, progress: Option<agent_protocol::Progress>) -> Task {
        let CurrentTask { what, number, of, since } = task;
        Task { what: what.into_owned(), number, of, since: Time(since), progress }
    }
}

shaped! {
    #[derive(Serialize)]
    struct LastSeenView {
        bmc: Option<ObservationView>,
        dhcp: Option<ObservationView>,
        tftp: Option<ObservationView>,
        http: Option<ObservationView>,
        agent: Option<ObservationView>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ObservationView {
        at: Time,
        what: String,
    }
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
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let reported = explain(&node);
    let task = |task| Task::new(task, request.app.conductor.progress(node.id));
    let body = Body {
        uuid: node.id,
        name: node.name.as_ref().map(|name| name.as_str()),
        place: node.place.as_ref(),
        provision_state: node.provision_state.as_str(),
        target_provision_state: node.leads_to().map(|state| state.as_str()),
        power_state: node.power_state,
        since: Time(reported.since),
        summary: reported.summary,
        task: reported.task.map(task),
        failure: reported.failure.as_ref(),
        hypervisor: hypervisor::View::of(&node),
        last_seen: request.app.conductor.last_seen(node.id).into(),
        next: reported.next,
    };
    Ok(json(StatusCode::OK, &body))
}
