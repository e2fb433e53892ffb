//! Events of a cluster: as a list, or as a stream.

use axum::response::Response;
use cluster_store::{PagePart, PageRows};
use http::HeaderMap;
use openstack_api::{JsonShape, ListPart, Listing, PathParam, Query, Route, Routes, Shaped};

use super::event_stream;
use crate::app::App;
use crate::error::{Error, Result};
use crate::event::{Shown, page};
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List a cluster's events, or follow them", events)
        .query_parameters(["limit", "marker"])
        .returns(JsonShape::object([("events", JsonShape::list(Shown::shape()))]))
        .streams("Each event as soon as it is recorded, starting after Last-Event-ID.");
    Routes::new("bedplate").at("/bedplate/v1/clusters/{cluster}/events", [list])
}

/// `GET /bedplate/v1/clusters/{cluster}/events?limit=&marker=`: the oldest events first, or a stream if `Accept` asks for one.
async fn events(
    request: Request,
    PathParam(ident): PathParam<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response> {
    if event_stream::accepts_event_stream(&headers) {
        query.finish()?;
        let cluster = request.cluster(&ident).await?;
        return event_stream::answer(&request, &cluster, &headers);
    }
    let (limit, marker) = page(&mut query)?;
    query.finish()?;
    let cluster = request.cluster(&ident).await?.id;
    let store = request.app.store.clone();
    let page = Listing { limit, ..Listing::whole("events") };
    openstack_api::list(page, move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.events_part_of(cluster, asked.elements, marker, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |event| event.at, Shown::from, more)?)
        })
    })
    .await
}
