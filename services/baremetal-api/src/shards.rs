//! `/v1/shards`: counts the nodes of each shard.

use axum::extract::State;
use axum::response::Response;
use baremetal_store::{Listed, Part};
use openstack_api::{Caller, Handle, ListPart, Listing, Routes, Shape};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;
use crate::microversion;

/// The routes of shards.
pub(crate) fn routes() -> Routes<App> {
    let list = Handle::get("Count the nodes of each shard", list);
    let shard = Shape::object([("name", Shape::text().or_null()), ("count", Shape::whole())]);
    let list = list.tells(Shape::object([("shards", Shape::list(shard))]));
    Routes::new("nodes").at("/v1/shards", [list.since(microversion::SHARD)])
}

#[derive(Serialize)]
struct Shard<'a> {
    name: Option<&'a str>,
    count: u64,
}

/// `GET /v1/shards`: counts the nodes of each shard.
async fn list(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("shards"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = Part { after: asked.after, bytes: asked.bytes };
            let Listed { found, more } = store.shards_part(asked.elements, part).await?;
            let part = ListPart::of(
                &found,
                |(name, _)| name.clone().unwrap_or_default(),
                |(name, count)| Shard { name: name.as_deref(), count: *count },
                more,
            );
            Ok::<_, Error>(part?)
        })
    })
    .await
}
