//! `/v1/nodes/{node}/children`: lists the nodes whose parent is a node.

use axum::response::Response;
use baremetal_core::{NodeFilter, NodeSort, NodeUuid, Page};
use baremetal_store::PagePart;
use http::StatusCode;
use openstack_api::{JsonShape, MAX_LIMIT, Origin, PathParam, Route, json};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, visible_project};
use crate::{microversion, rule};

/// The most children of a node that are read at once, and how many bytes of them.
const CHILDREN_AT_ONCE: u32 = 16;
const CHILDREN_BYTES: usize = 128 << 10;

/// The route of the children of a node.
pub(super) fn route() -> Route<App> {
    let link = JsonShape::object([("href", JsonShape::text()), ("rel", JsonShape::text())]);
    let shape =
        JsonShape::object([("children", JsonShape::list(JsonShape::text())), ("links", link)]);
    Route::get("List the child nodes of a node", children)
        .with_rule(rule::READ)
        .returns(shape)
        .since(microversion::PARENT_NODE)
}

/// `GET /v1/nodes/{node}/children`: lists the nodes whose parent is this node.
async fn children(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    #[derive(Serialize)]
    struct Link {
        href: String,
        rel: &'static str,
    }
    #[derive(Serialize)]
    struct Body {
        children: Vec<NodeUuid>,
        links: Link,
    }
    let node = request.node(&ident).await?;
    let children = find_children(&request, node.id).await?;
    let href = format!("{origin}/v1/nodes?parent_node={}", node.id);
    let links = Link { href, rel: "children" };
    Ok(json(StatusCode::OK, &Body { children, links }))
}

/// Finds the children that the caller may see. Only their ids are kept in memory.
async fn find_children(request: &Request, parent: NodeUuid) -> Result<Vec<NodeUuid>> {
    let filter = NodeFilter {
        parent_node: Some(parent),
        seen_by: visible_project(&request.caller),
        ..NodeFilter::default()
    };
    let (mut found, mut more) = (Vec::new(), None);
    loop {
        let limit = MAX_LIMIT.saturating_sub(found.len() as u32).min(CHILDREN_AT_ONCE);
        let page = Page { limit, marker: None, sort: NodeSort::default(), descending: false };
        let part = PagePart { after: more, bytes: CHILDREN_BYTES };
        let listed = request.app.store.list_nodes_part(&filter, &page, part).await?;
        found.extend(listed.found.iter().map(|child| child.id));
        more = listed.more;
        if more.is_none() || found.len() >= MAX_LIMIT as usize {
            return Ok(found);
        }
    }
}
