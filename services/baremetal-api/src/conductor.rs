//! `/v1/conductors`: the conductors that manage nodes.

use axum::response::Response;
use baremetal_core::Driver;
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{
    ApiError, Direction, JsonShape, Links, Origin, Paging, PathParam, Query, Route, Routes, Time,
    flag, json, json_field,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::app::App;
use crate::error::Result;
use crate::microversion;
use crate::request::Request;

/// A conductor that has not reported for this many seconds counts as dead, as in Ironic.
const SILENCE: i64 = 60;

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List conductors", list);
    let show = Route::get("Show a conductor", show);
    let list = list
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "detail", "fields"])
        .returns(JsonShape::object([("conductors", JsonShape::list(shape()))]));
    let show = show.query_parameters(["fields"]).returns(shape());
    Routes::new("conductors")
        .at("/v1/conductors", [list.since(microversion::CONDUCTORS)])
        .at("/v1/conductors/{hostname}", [show.since(microversion::CONDUCTORS)])
}

fn shape() -> JsonShape {
    JsonShape::object([("links", JsonShape::links())]).maybe([
        ("hostname", JsonShape::text()),
        ("conductor_group", JsonShape::text()),
        ("alive", JsonShape::boolean()),
        ("drivers", JsonShape::list(JsonShape::text())),
        ("created_at", JsonShape::text().or_null()),
        ("updated_at", JsonShape::text()),
    ])
}

/// The fields of a conductor. The first four are shown in lists by default.
const FIELDS: [&str; 7] =
    ["hostname", "conductor_group", "alive", "links", "drivers", "created_at", "updated_at"];

/// The number of fields that lists show by default.
const BRIEF: usize = 4;

/// A conductor in the form that clients see.
struct View<'a> {
    hostname: &'a str,
    group: &'a str,
    seen: Timestamp,
    is_alive: bool,
    origin: &'a Origin,
    shown: &'a [&'static str],
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links =
            Links { origin: self.origin, collection: "conductors", id: self.hostname, part: "" };
        let mut object = serializer.serialize_map(None)?;
        for name in self.shown {
            match *name {
                "hostname" => object.serialize_entry(name, self.hostname)?,
                "conductor_group" => object.serialize_entry(name, self.group)?,
                "alive" => object.serialize_entry(name, &self.is_alive)?,
                "links" => object.serialize_entry(name, &links)?,
                "drivers" => object.serialize_entry(name, &Driver::ALL.map(Driver::as_str))?,
                "created_at" => object.serialize_entry(name, &None::<Time>)?,
                _ => object.serialize_entry(name, &Time(self.seen))?,
            }
        }
        object.end()
    }
}

/// The fields that the query requests with `fields` or `detail`; by default the first `usual`.
fn requested(query: &mut Query, usual: usize) -> Result<Vec<&'static str>, ApiError> {
    let detail = query.take("detail").map(|raw| flag("detail", &raw)).transpose()?;
    match (query.take("fields"), detail) {
        (Some(_), Some(true)) => {
            Err(ApiError::bad_field("fields", "cannot be used together with detail"))
        }
        (Some(raw), Some(false) | None) => named(&raw),
        (None, Some(true)) => Ok(FIELDS.to_vec()),
        (None, Some(false) | None) => Ok(FIELDS[..usual].to_vec()),
    }
}

fn named(raw: &str) -> Result<Vec<&'static str>, ApiError> {
    let wanted: Vec<&str> = raw.split(',').map(str::trim).collect();
    if let Some(unknown) = wanted.iter().find(|name| !FIELDS.contains(name)) {
        let unknown: String = unknown.chars().take(64).collect();
        let problem = format!("a conductor has no field {unknown:?}");
        return Err(ApiError::bad_field("fields", problem));
    }
    let shown = FIELDS.into_iter().filter(|name| *name == "links" || wanted.contains(name));
    Ok(shown.collect())
}

fn view<'a>(
    app: &'a App,
    (hostname, seen): &'a (String, Timestamp),
    origin: &'a Origin,
    shown: &'a [&'static str],
) -> View<'a> {
    let is_alive = (app.clock)().as_second() - seen.as_second() <= SILENCE;
    // The database does not tell the groups of conductors that are no more.
    let own = (app.conductor.hostname() == hostname).then(|| app.conductor.groups()[0].as_str());
    View { hostname, group: own.unwrap_or_default(), seen: *seen, is_alive, origin, shown }
}

/// The part of the list that the client requested. The order is the order of the names, since there are only a few conductors.
fn page(
    mut known: Vec<(String, Timestamp)>,
    query: &mut Query,
) -> Result<Vec<(String, Timestamp)>, ApiError> {
    let marker = query.take("marker");
    let paging = Paging::take(query)?;
    match paging.sort_key.as_deref() {
        None | Some("id" | "hostname" | "conductor_group" | "created_at") => known.sort(),
        Some("updated_at") => known.sort_by_key(|(_, seen)| *seen),
        Some(key) => {
            let key: String = key.chars().take(64).collect();
            let problem = format!("conductors cannot be sorted by {key:?}");
            return Err(ApiError::bad_field("sort_key", problem));
        }
    }
    if paging.direction == Direction::Descending {
        known.reverse();
    }
    if let Some(marker) = marker {
        let at = known.iter().position(|(name, _)| *name == marker).ok_or_else(|| {
            let marker: String = marker.chars().take(64).collect();
            ApiError::not_found(format!("marker: Conductor {marker} could not be found."))
        })?;
        known.drain(..=at);
    }
    known.truncate(paging.limit as usize);
    Ok(known)
}

/// `GET /v1/conductors`: lists conductors.
async fn list(Request { app, .. }: Request, origin: Origin, mut query: Query) -> Result<Response> {
    let shown = requested(&mut query, BRIEF)?;
    let known = page(app.store.list_conductors().await?, &mut query)?;
    query.finish()?;
    let views: Vec<View<'_>> = known.iter().map(|it| view(&app, it, &origin, &shown)).collect();
    Ok(json_field(StatusCode::OK, "conductors", &views))
}

/// `GET /v1/conductors/{hostname}`: shows a conductor.
async fn show(
    Request { app, .. }: Request,
    origin: Origin,
    PathParam(hostname): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = requested(&mut query, FIELDS.len())?;
    query.finish()?;
    let known = app.store.list_conductors().await?;
    let found = known.iter().find(|(name, _)| *name == hostname).ok_or_else(|| {
        let hostname: String = hostname.chars().take(64).collect();
        ApiError::not_found(format!("Conductor {hostname} could not be found."))
    })?;
    Ok(json(StatusCode::OK, &view(&app, found, &origin, &shown)))
}
