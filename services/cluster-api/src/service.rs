//! `/v1/mservices`: the clusterd processes.

use axum::response::Response;
use cluster_store::ServiceSeen;
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{JsonShape, RequiredAccess, Route, Routes, Shaped, Time, json_field, shaped};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;

/// A clusterd that has not reported for this time counts as down, in seconds.
const SILENCE: i64 = 60;

/// The only value that Magnum's clients know.
const BINARY: &str = "magnum-conductor";

pub(crate) fn routes() -> Routes<App> {
    Routes::new("mservices").at(
        "/v1/mservices",
        [Route::get("List services", list).needs(RequiredAccess::Administer).returns(shape())],
    )
}

/// The response schema of the list.
fn shape() -> JsonShape {
    JsonShape::object([("mservices", JsonShape::list(Shown::shape()))])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: usize,
        host: &'a str,
        binary: &'static str,
        state: &'static str = JsonShape::enumeration(["up", "down"]),
        disabled: bool,
        disabled_reason: Option<()> = JsonShape::null(),
        report_count: i64,
        created_at: Time,
        updated_at: Time,
    }
}

fn shown(id: usize, seen: &ServiceSeen, now: Timestamp) -> Shown<'_> {
    let alive = now.as_second() - seen.seen_at.as_second() <= SILENCE;
    Shown {
        id,
        host: &seen.hostname,
        binary: BINARY,
        state: if alive { "up" } else { "down" },
        disabled: false,
        disabled_reason: None,
        report_count: seen.reports,
        created_at: Time(seen.started_at),
        updated_at: Time(seen.seen_at),
    }
}

/// `GET /v1/mservices`: lists the clusterd processes.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let (known, now) = (app.store.list_services().await?, (app.clock)());
    let shown = (1..).zip(&known).map(|(id, seen)| shown(id, seen, now));
    Ok(json_field(StatusCode::OK, "mservices", &shown.collect::<Vec<_>>()))
}
