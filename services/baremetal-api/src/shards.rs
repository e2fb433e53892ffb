//! `/v1/shards`: counts the nodes of each shard.

use axum::response::Response;
use baremetal_store::{PagePart, PageRows};
use openstack_api::{JsonShape, ListPart, Listing, Route, Routes, Shaped, shaped};
use serde::Serialize;

use crate::app::App;
use crate::error::{Error, Result};
use crate::microversion;
use crate::request::Request;

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("Count the nodes of each shard", list);
    let shard = Shard::shape();
    let list = list.returns(JsonShape::object([("shards", JsonShape::list(shard))]));
    Routes::new("nodes").at("/v1/shards", [list.since(microversion::SHARD)])
}

shaped! {
    #[derive(Serialize)]
    struct Shard<'a> {
        name: Option<&'a str>,
        count: u64,
    }
}

/// `GET /v1/shards`: counts the nodes of each shard.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("shards"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } = store.shards_part(asked.elements, part).await?;
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
