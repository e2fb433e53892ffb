//! `/v1/nodes/{node}/children`: lists the nodes whose parent is a node.

use axum::response::Response;
use baremetal_core::{ChildNodes, Node, NodeFilter, NodeSort, NodeUuid, Page};
use baremetal_store::{NodeDetail, PagePart};
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, MAX_LIMIT, Origin, PathParam, Route, json};
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
    let seen_by = visible_project(&request.caller);
    let children = find_children(&request, node.id, seen_by).await?;
    let href = format!("{origin}/v1/nodes?parent_node={}", node.id);
    let links = Link { href, rel: "children" };
    Ok(json(StatusCode::OK, &Body { children, links }))
}

/// Refuses a step on child nodes that the caller may not change under the rule of the route, and on nodes that are no child nodes. `field` names
/// the step in the request.
pub(crate) async fn check_children(
    request: &Request,
    parent: &Node,
    children: &ChildNodes,
    field: &str,
) -> Result<()> {
    let ids = match children {
        ChildNodes::Named(named) => named.clone(),
        ChildNodes::All => {
            let seen_by = visible_project(&request.caller);
            let visible = find_children(request, parent.id, seen_by).await?;
            if visible.len() != find_children(request, parent.id, None).await?.len() {
                let problem = "the node has child nodes that the caller may not change; name the others in limit_child_node_execution";
                let field = format!("{field}.execute_on_child_nodes");
                return Err(ApiError::bad_field(&field, problem).into());
            }
            visible
        }
    };
    if ids.is_empty() {
        return Ok(());
    }
    let idents: Vec<String> = ids.iter().map(NodeUuid::to_string).collect();
    for child in request.nodes(&idents).await? {
        if child.parent_node != Some(parent.id) {
            let problem = format!("node {} is no child node of this node", child.id);
            let field = format!("{field}.limit_child_node_execution");
            return Err(ApiError::bad_field(&field, problem).into());
        }
    }
    Ok(())
}

/// Finds the children that the project `seen_by` may see, or all. Only their ids are kept in memory.
async fn find_children(
    request: &Request,
    parent: NodeUuid,
    seen_by: Option<String>,
) -> Result<Vec<NodeUuid>> {
    let filter = NodeFilter { parent_node: Some(parent), seen_by, ..NodeFilter::default() };
    let (mut found, mut more) = (Vec::new(), None);
    loop {
        let limit = MAX_LIMIT.saturating_sub(found.len() as u32).min(CHILDREN_AT_ONCE);
        let page = Page { limit, marker: None, sort: NodeSort::default(), descending: false };
        let part = PagePart { after: more, bytes: CHILDREN_BYTES };
        let listed =
            request.app.store.list_nodes_part(&filter, &page, part, NodeDetail::Summary).await?;
        found.extend(listed.found.iter().map(|child| child.id));
        more = listed.more;
        if more.is_none() || found.len() >= MAX_LIMIT as usize {
            return Ok(found);
        }
    }
}
