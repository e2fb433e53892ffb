//! Events of a cluster: as a list, or as a stream.

use axum::extract::State;
use axum::response::Response;
use cluster_core::{Event, EventUuid};
use cluster_store::{PagePart, PageRows};
use http::HeaderMap;
use openstack_api::{
    ApiError, Caller, JsonShape, ListPart, Listing, PathParam, Query, Route, Routes, Time,
};
use serde::Serialize;

use super::event_stream;
use crate::app::App;
use crate::error::Error;

pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List a cluster's events, or follow them", events)
        .query_parameters(["limit", "marker"])
        .returns(JsonShape::object([("events", JsonShape::list(shape()))]))
        .streams("Each event as soon as it is recorded, starting after Last-Event-ID.");
    Routes::new("bedplate").at("/bedplate/v1/clusters/{cluster}/events", [list])
}

/// The response schema of an event.
pub(crate) fn shape() -> JsonShape {
    JsonShape::object([
        ("id", JsonShape::text().or_null()),
        ("at", JsonShape::text()),
        ("severity", JsonShape::text()),
        ("reason", JsonShape::text()),
        ("message", JsonShape::text()),
    ])
}

#[derive(Serialize)]
pub(super) struct Shown<'a> {
    id: Option<String>,
    at: Time,
    severity: &'static str,
    reason: &'a str,
    message: &'a str,
}

/// An event in a list or in a stream.
pub(super) fn shown(event: &Event) -> Shown<'_> {
    Shown {
        id: event.id.map(|id| id.to_string()),
        at: Time(event.at),
        severity: event.severity.as_str(),
        reason: &event.reason,
        message: &event.message,
    }
}

/// `GET /bedplate/v1/clusters/{cluster}/events?limit=&marker=`: the oldest events first, or a stream if `Accept` asks for one.
async fn events(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Error> {
    if event_stream::accepts_event_stream(&headers) {
        query.finish()?;
        let cluster = app.cluster(&caller, &ident).await?;
        return event_stream::answer(&app, &caller, &cluster, &headers);
    }
    let (limit, marker) = page(&mut query)?;
    query.finish()?;
    let cluster = app.cluster(&caller, &ident).await?.id;
    let store = app.store.clone();
    let page = Listing { limit, ..Listing::whole("events") };
    openstack_api::list(page, move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.events_part_of(cluster, asked.elements, marker, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |event| event.at, shown, more)?)
        })
    })
    .await
}

/// Takes `limit` and `marker` out of `query`.
pub(crate) fn page(query: &mut Query) -> Result<(u32, Option<EventUuid>), ApiError> {
    let limit = match query.take("limit").map(|raw| raw.parse::<u32>()) {
        None => 1000,
        Some(Ok(limit @ 1..=1000)) => limit,
        Some(_) => return Err(ApiError::bad_field("limit", "must be between 1 and 1000")),
    };
    let marker = query.take("marker").map(|raw| raw.parse());
    let marker = marker.transpose().map_err(|_| ApiError::bad_field("marker", "must be a UUID"))?;
    Ok((limit, marker))
}
