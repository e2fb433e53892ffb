//! `/v1/conductors`: the conductors that manage nodes.

use axum::response::Response;
use baremetal_core::Driver;
use http::StatusCode;
use openstack_api::{
    ApiError, Direction, JsonShape, Links, ListRequest, Origin, Paging, PathParam, Query, Route,
    Routes, Time, flag, json, next_link,
};
use replicas::ConductorRow;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::app::App;
use crate::error::Result;
use crate::microversion;
use crate::request::Request;

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List conductors", list);
    let show = Route::get("Show a conductor", show);
    let list = list
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "detail", "fields"])
        .returns(JsonShape::page("conductors", shape()));
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
        ("created_at", JsonShape::text()),
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
    row: &'a ConductorRow,
    origin: &'a Origin,
    shown: &'a [&'static str],
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ConductorRow { hostname, groups, created_at, seen_at, is_alive, .. } = self.row;
        // A conductor of Ironic has one group. The first one here is the group of new nodes.
        let group = groups.first().map_or("", String::as_str);
        let links = Links { origin: self.origin, collection: "conductors", id: hostname, part: "" };
        let mut object = serializer.serialize_map(None)?;
        for name in self.shown {
            match *name {
                "hostname" => object.serialize_entry(name, hostname)?,
                "conductor_group" => object.serialize_entry(name, group)?,
                "alive" => object.serialize_entry(name, is_alive)?,
                "links" => object.serialize_entry(name, &links)?,
                "drivers" => object.serialize_entry(name, &Driver::ALL.map(Driver::as_str))?,
                "created_at" => object.serialize_entry(name, &Time(*created_at))?,
                _ => object.serialize_entry(name, &Time(*seen_at))?,
            }
        }
        object.end()
    }
}

/// A page of conductors.
#[derive(Serialize)]
struct Conductors<'a> {
    conductors: Vec<View<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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

/// The part of `known` that the client requested. `known` is in the order of creation.
fn page(
    mut known: Vec<ConductorRow>,
    paging: &Paging,
    marker: Option<String>,
) -> Result<Vec<ConductorRow>, ApiError> {
    match paging.sort_key.as_deref() {
        None | Some("id" | "created_at") => {}
        Some("conductor_group") => known.sort_by(|a, b| a.groups.first().cmp(&b.groups.first())),
        Some("hostname") => known.sort_by(|a, b| a.hostname.cmp(&b.hostname)),
        Some("updated_at") => known.sort_by_key(|it| it.seen_at),
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
        let at = known.iter().position(|it| it.hostname == marker).ok_or_else(|| {
            let marker = short(&marker);
            ApiError::not_found(format!("marker: Conductor {marker} could not be found."))
        })?;
        known.drain(..=at);
    }
    known.truncate(paging.limit as usize);
    Ok(known)
}

/// `GET /v1/conductors`: lists conductors.
async fn list(Request { app, .. }: Request, request: ListRequest) -> Result<Response> {
    let ListRequest { origin, path, mut query, .. } = request;
    let shown = requested(&mut query, BRIEF)?;
    let marker = query.take("marker");
    let paging = Paging::take(&mut query)?;
    query.finish()?;
    let known = page(app.store.conductors().list((app.clock)()).await?, &paging, marker)?;
    let fields: Vec<&str> = shown.iter().copied().filter(|name| *name != "links").collect();
    let link = |last: &ConductorRow| {
        let descending = paging.direction == Direction::Descending;
        let pairs = [
            ("sort_key", paging.sort_key.clone().unwrap_or_else(|| "id".to_owned())),
            ("sort_dir", if descending { "desc" } else { "asc" }.to_owned()),
            ("fields", fields.join(",")),
        ];
        let query = Query { pairs: pairs.map(|(name, value)| (name.to_owned(), value)).to_vec() };
        next_link(&origin, &path, &query, paging.limit, &last.hostname)
    };
    let next = known.last().filter(|_| known.len() == paging.limit as usize).map(link);
    let conductors = known.iter().map(|row| View { row, origin: &origin, shown: &shown }).collect();
    Ok(json(StatusCode::OK, &Conductors { conductors, next }))
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
    let known = app.store.conductors().list((app.clock)()).await?;
    let found = known.iter().find(|it| it.hostname == hostname);
    let found = found.ok_or_else(|| missing(&hostname))?;
    Ok(json(StatusCode::OK, &View { row: found, origin: &origin, shown: &shown }))
}

/// The error for a host name that no conductor has.
pub(crate) fn missing(hostname: &str) -> ApiError {
    ApiError::not_found(format!("Conductor {} could not be found.", short(hostname)))
}

/// A host name as an error shows it.
pub(crate) fn short(hostname: &str) -> String {
    hostname.chars().take(64).collect()
}
