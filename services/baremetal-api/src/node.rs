//! `/v1/nodes`: create, list, show, change, forget.

mod field;
mod query;
mod view;
mod write;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use baremetal_core::{
    Driver, Node, NodeIdent, NodeUuid, State as Stage, check_change, check_delete,
};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, Handle, Microversion, Operation, Origin, Query, Routes, Segment, Strict,
    flag, json, json_of, next_link,
};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::info;

use crate::app::{App, again};
use crate::error::Error;
use crate::field::Shown;
use crate::{microversion, openapi};
use query::{Extent, List};
use view::{Look, View};

pub(crate) use field::Field;
pub(crate) use view::{last_error, state_word};

/// How much room a field takes, measured on nodes with little in their objects.
const BYTES_A_FIELD: usize = 40;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let nodes = [
        Handle::get("List nodes", list),
        Handle::post("Enroll a node", create)
            .reads(openapi::node_body())
            .answers(StatusCode::CREATED),
    ];
    let node = [
        Handle::get("Show a node", show),
        Handle::patch("Change a node", patch).reads(openapi::patch_body()),
        Handle::delete("Forget a node", forget).answers(StatusCode::NO_CONTENT),
    ];
    let children = Handle::get("List the nodes that are a part of this one", children);
    Routes::new("nodes")
        .at("/v1/nodes", nodes)
        .at("/v1/nodes/detail", [Handle::get("List nodes with all their fields", list_detail)])
        .at("/v1/nodes/{node}", node)
        .at("/v1/nodes/{node}/children", [children.since(microversion::PARENT_NODE)])
}

/// `POST /v1/nodes`: enroll a node.
async fn create(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    Strict(body): Strict<Map<String, Value>>,
) -> Result<Response, Error> {
    let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, (app.clock)());
    if !asked.has(microversion::ENROLL) {
        // Before that state came, a node could be deployed as soon as it was there.
        node.provision_state = Stage::Available;
    }
    write::create(&mut node, body, asked)?;
    check_parent(&app, &node).await?;
    app.store.insert_node(&node).await?;
    info!(node.id = %node.id, "node {} was enrolled", node.label());

    let location = HeaderValue::try_from(format!("{origin}/v1/nodes/{}", node.id));
    let mut answer = one(&app, &node, asked, Shown::all(asked), &origin, StatusCode::CREATED);
    if let Ok(location) = location {
        answer.headers_mut().insert(LOCATION, location);
    }
    Ok(answer)
}

/// `GET /v1/nodes`.
async fn list(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    let wanted = query::list(query.clone(), Extent::Brief, asked)?;
    page(&app, wanted, asked, &origin, uri.path(), &query).await
}

/// `GET /v1/nodes/detail`.
async fn list_detail(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    let wanted = query::list(query.clone(), Extent::Detail, asked)?;
    page(&app, wanted, asked, &origin, uri.path(), &query).await
}

/// `GET /v1/nodes/{node}`.
async fn show(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    Segment(ident): Segment<String>,
    mut query: Query,
) -> Result<Response, Error> {
    let shown = match query.take("fields") {
        None => Shown::all(asked),
        Some(raw) => {
            asked.need(microversion::FIELDS, "fields")?;
            Shown::named(&raw, asked)?
        }
    };
    query.finish()?;
    let node = app.node(asked, &ident).await?;
    Ok(one(&app, &node, asked, shown, &origin, StatusCode::OK))
}

/// `PATCH /v1/nodes/{node}`.
async fn patch(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    Segment(ident): Segment<String>,
    mut query: Query,
    Strict(patch): Strict<Vec<Operation>>,
) -> Result<Response, Error> {
    let reset_interfaces = match query.take("reset_interfaces") {
        None => false,
        Some(raw) => {
            asked.need(microversion::RESET_INTERFACES, "reset_interfaces")?;
            flag("reset_interfaces", &raw)?
        }
    };
    query.finish()?;
    let patched = again(|| async {
        let before = app.node(asked, &ident).await?;
        let mut after = write::patched(&before, patch.clone(), reset_interfaces, asked)?;
        check_change(&before, &after)?;
        if before.parent_node != after.parent_node {
            check_parent(&app, &after).await?;
        }
        after.updated_at = Some((app.clock)());
        Ok(app.store.update_node(&after, &[]).await?)
    });
    let node = patched.await?;
    Ok(one(&app, &node, asked, Shown::all(asked), &origin, StatusCode::OK))
}

/// `DELETE /v1/nodes/{node}`.
async fn forget(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
) -> Result<StatusCode, Error> {
    again(|| async {
        let node = app.node(asked, &ident).await?;
        check_delete(&node)?;
        app.store.delete_node(&node).await?;
        app.conductor.forget(node.id);
        info!(node.id = %node.id, "node {} was forgotten", node.label());
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/nodes/{node}/children`.
async fn children(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
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
    let node = app.node(asked, &ident).await?;
    let mut wanted = query::list(Query::default(), Extent::Brief, asked)?;
    wanted.filter.parent_node = Some(node.id);
    let found = app.store.list_nodes(&wanted.filter, &wanted.page).await?;
    let href = format!("{origin}/v1/nodes?parent_node={}", node.id);
    let links = Link { href, rel: "children" };
    let children = found.iter().map(|child| child.id).collect();
    Ok(json(StatusCode::OK, &Body { children, links }))
}

/// Refuses a parent that there is not, or that is the node itself.
async fn check_parent(app: &App, node: &Node) -> Result<(), Error> {
    let Some(parent) = node.parent_node else { return Ok(()) };
    let found = app.store.find_node(&NodeIdent::Id(parent)).await?;
    if parent == node.id || found.is_none() {
        return Err(ApiError::bad_field("parent_node", "there is no such other node").into());
    }
    Ok(())
}

/// One page of a list.
async fn page(
    app: &App,
    mut wanted: List,
    asked: Microversion,
    origin: &Origin,
    path: &str,
    query: &Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        nodes: Vec<View<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    if let Some(parent) = wanted.parent {
        let parent = app.store.find_node(&parent).await?;
        let missing = || ApiError::bad_field("parent_node", "there is no such node");
        wanted.filter.parent_node = Some(parent.ok_or_else(missing)?.id);
    }
    let elsewhere = wanted.conductor.is_some_and(|name| name != app.conductor.hostname());
    let found = if wanted.faulty || elsewhere {
        Vec::new()
    } else {
        app.store.list_nodes(&wanted.filter, &wanted.page).await?
    };

    let look = Look { asked, shown: wanted.shown, origin, conductor: app.conductor.hostname() };
    let full = found.len() == wanted.page.limit as usize;
    let last = found.last().filter(|_| full);
    let next = last
        .map(|last| next_link(origin, path, query, wanted.page.limit, last.id.into_untyped_uuid()));
    let about = found.len() * wanted.shown.rows().count() * BYTES_A_FIELD;
    let nodes = found.iter().map(|node| View { node, look }).collect();
    Ok(json_of(StatusCode::OK, &Body { nodes, next }, about))
}

/// One node, shown.
fn one(
    app: &App,
    node: &Node,
    asked: Microversion,
    shown: Shown<Field>,
    origin: &Origin,
    status: StatusCode,
) -> Response {
    let look = Look { asked, shown, origin, conductor: app.conductor.hostname() };
    json_of(status, &View { node, look }, shown.rows().count() * BYTES_A_FIELD)
}
