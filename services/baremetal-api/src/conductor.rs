//! `/v1/conductors`: the conductors that manage nodes.

use axum::response::Response;
use baremetal_core::Driver;
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{
    ApiError, JsonShape, Links, Origin, Paging, PathParam, Query, Route, Routes, Time, flag, json,
    json_field,
};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;
use crate::microversion;
use crate::request::Request;

/// A conductor that has not reported for this many seconds counts as dead, as in Ironic.
const SILENCE: i64 = 60;

/// The routes of conductors.
pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List conductors", list);
    let show = Route::get("Show a conductor", show);
    let list = list
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "detail", "fields"])
        .returns(JsonShape::object([("conductors", JsonShape::list(shape()))]));
    let show = show.returns(shape());
    Routes::new("conductors")
        .at("/v1/conductors", [list.since(microversion::CONDUCTORS)])
        .at("/v1/conductors/{hostname}", [show.since(microversion::CONDUCTORS)])
}

/// The JSON shape of a conductor.
fn shape() -> JsonShape {
    let shape = JsonShape::object([
        ("hostname", JsonShape::text()),
        ("conductor_group", JsonShape::text()),
        ("alive", JsonShape::boolean()),
        ("links", JsonShape::links()),
    ]);
    shape.maybe([
        ("drivers", JsonShape::list(JsonShape::text())),
        ("created_at", JsonShape::text().or_null()),
        ("updated_at", JsonShape::text()),
    ])
}

#[derive(Serialize)]
struct Shown<'a> {
    hostname: &'a str,
    conductor_group: &'static str,
    alive: bool,
    links: Links<'a, &'a str>,
    #[serde(flatten)]
    more: Option<DetailFields>,
}

/// The fields that only a detailed view shows.
#[derive(Serialize)]
struct DetailFields {
    drivers: Vec<&'static str>,
    created_at: Option<Time>,
    updated_at: Time,
}

/// How many fields of a conductor are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Brief,
    Detail,
}

fn view<'a>(
    hostname: &'a str,
    seen: Timestamp,
    now: Timestamp,
    origin: &'a Origin,
    extent: DetailLevel,
) -> Shown<'a> {
    let more = || DetailFields {
        drivers: Driver::ALL.map(Driver::as_str).to_vec(),
        created_at: None,
        updated_at: Time(seen),
    };
    Shown {
        hostname,
        conductor_group: "",
        alive: now.as_second() - seen.as_second() <= SILENCE,
        links: Links { origin, collection: "conductors", id: hostname, part: "" },
        more: (extent == DetailLevel::Detail).then(more),
    }
}

/// `GET /v1/conductors`: lists all conductors on a single page, since there are only a few.
async fn list(
    Request { app, .. }: Request,
    origin: Origin,
    mut query: Query,
) -> Result<Response, Error> {
    Paging::take(&mut query)?;
    let detail = query.take("detail").map_or(Ok(false), |raw| flag("detail", &raw))?;
    query.take("fields");
    query.finish()?;
    let extent = if detail { DetailLevel::Detail } else { DetailLevel::Brief };
    let (known, now) = (app.store.list_conductors().await?, (app.clock)());
    let shown = known.iter().map(|(name, seen)| view(name, *seen, now, &origin, extent));
    Ok(json_field(StatusCode::OK, "conductors", &shown.collect::<Vec<_>>()))
}

/// `GET /v1/conductors/{hostname}`: shows a conductor.
async fn show(
    Request { app, .. }: Request,
    origin: Origin,
    PathParam(hostname): PathParam<String>,
) -> Result<Response, Error> {
    let known = app.store.list_conductors().await?;
    let (name, seen) = known.iter().find(|(name, _)| *name == hostname).ok_or_else(|| {
        let hostname: String = hostname.chars().take(64).collect();
        ApiError::not_found(format!("Conductor {hostname} could not be found."))
    })?;
    Ok(json(StatusCode::OK, &view(name, *seen, (app.clock)(), &origin, DetailLevel::Detail)))
}
