//! `/v1/mservices`: the clusterd processes.

use axum::extract::State;
use axum::response::Response;
use cluster_store::ServiceSeen;
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{Caller, Handle, Need, Routes, Shape, Time, json};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;

/// A clusterd that has not reported for this time counts as down, in seconds.
const SILENCE: i64 = 60;

/// Returns the route of services.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("mservices").at(
        "/v1/mservices",
        [Handle::get("List services", list).needs(Need::Administer).tells(shape())],
    )
}

/// The response schema of the list.
fn shape() -> Shape {
    let shown = Shape::object([
        ("id", Shape::whole()),
        ("host", Shape::text()),
        ("binary", Shape::text()),
        ("state", Shape::word(["up", "down"])),
        ("disabled", Shape::flag()),
        ("disabled_reason", Shape::null()),
        ("report_count", Shape::whole()),
        ("created_at", Shape::text()),
        ("updated_at", Shape::text()),
    ]);
    Shape::object([("mservices", Shape::list(shown))])
}

#[derive(Serialize)]
struct Shown<'a> {
    id: usize,
    host: &'a str,
    binary: &'static str,
    state: &'static str,
    disabled: bool,
    disabled_reason: Option<()>,
    report_count: i64,
    created_at: Time,
    updated_at: Time,
}

fn shown(id: usize, seen: &ServiceSeen, now: Timestamp) -> Shown<'_> {
    let alive = now.as_second() - seen.seen_at.as_second() <= SILENCE;
    Shown {
        id,
        host: &seen.hostname,
        binary: "clusterd",
        state: if alive { "up" } else { "down" },
        disabled: false,
        disabled_reason: None,
        report_count: seen.reports,
        created_at: Time(seen.started_at),
        updated_at: Time(seen.seen_at),
    }
}

/// `GET /v1/mservices`: lists the clusterd processes.
async fn list(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        mservices: Vec<Shown<'a>>,
    }
    let (known, now) = (app.store.list_services().await?, (app.clock)());
    let shown = (1..).zip(&known).map(|(id, seen)| shown(id, seen, now));
    Ok(json(StatusCode::OK, &Body { mservices: shown.collect() }))
}
