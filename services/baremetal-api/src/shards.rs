//! `/v1/shards`: counts the nodes of each shard.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use baremetal_core::{NodeFilter, NodeSort, Page};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{Caller, Handle, MAX_LIMIT, Routes, Shape, json};
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
struct Shard {
    name: Option<String>,
    count: usize,
}

/// `GET /v1/shards`: counts the nodes of each shard. Reads all nodes, which is acceptable because clients ask only once, at their start.
async fn list(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body {
        shards: Vec<Shard>,
    }
    let filter = NodeFilter { include_children: true, ..NodeFilter::default() };
    let mut page = Page { limit: MAX_LIMIT, marker: None, sort: NodeSort::Id, descending: false };
    let mut counts = BTreeMap::<Option<String>, usize>::new();
    loop {
        let nodes = app.store.list_nodes(&filter, &page).await?;
        page.marker = nodes.last().map(|node| node.id.into_untyped_uuid());
        let full = nodes.len() == MAX_LIMIT as usize;
        for node in nodes {
            *counts.entry(node.shard).or_default() += 1;
        }
        if !full {
            break;
        }
    }
    let shards = counts.into_iter().map(|(name, count)| Shard { name, count }).collect();
    Ok(json(StatusCode::OK, &Body { shards }))
}
