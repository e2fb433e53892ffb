//! `/v1/nodes`: creates, lists, shows, changes and deletes nodes.

mod change;
mod children;
mod field;
mod list;
mod owner_and_lessee;
mod view;
mod write;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use baremetal_core::{Node, check_delete};
use baremetal_store::PageRows;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    Caller, JsonShape, ListPart, ListRequest, Microversion, Operation, Origin, PathParam, Query,
    Relation, Route, Routes, StrictJson, json_of, with_location,
};
use serde_json::{Map, Value};
use tracing::info;

use crate::app::{App, forced, relation, retry_if_stale};
use crate::error::Error;
use crate::field::{DetailLevel, FieldSet};
use crate::listing::list_of;
use crate::shown::Context;
use crate::view::View;
use crate::{list_query, openapi, rule};
use change::NodePatch;

pub(crate) use view::{last_error, state_word};

/// The average size of a field in bytes, measured on nodes whose objects contain little.
const BYTES_A_FIELD: usize = 40;

/// The routes of nodes.
pub(crate) fn routes() -> Routes<App> {
    let nodes = [
        Route::get("List nodes", list)
            .with_rule(rule::READ)
            .query_parameters(list_query::PAGING)
            .query_parameters(["detail"])
            .query_parameters(list_query::names::<Node>())
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page("nodes", openapi::shape::<Node>())),
        Route::post("Enroll a node", create)
            .with_rule(rule::ENROLL)
            .reads(openapi::body::<Node>([]))
            .answers(StatusCode::CREATED)
            .returns(openapi::shape::<Node>()),
    ];
    let node = [
        Route::get("Show a node", show)
            .with_rule(rule::READ)
            .query_parameters(["fields"])
            .returns(openapi::shape::<Node>()),
        // The rule of a changed field may require more.
        Route::patch("Change a node", patch)
            .with_rule(rule::USE)
            .reads(openapi::patch_body())
            .query_parameters(["reset_interfaces", "force"])
            .refuses([StatusCode::CONFLICT])
            .returns(openapi::shape::<Node>()),
        Route::delete("Delete a node", forget)
            .with_rule(rule::ADMINISTER)
            .query_parameters(["force"])
            .refuses([StatusCode::CONFLICT])
            .answers(StatusCode::NO_CONTENT),
    ];
    let detail = Route::get("List nodes with all their fields", list_detail)
        .with_rule(rule::READ)
        .query_parameters(list_query::PAGING)
        .query_parameters(["detail"])
        .query_parameters(list_query::names::<Node>())
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("nodes", openapi::shape::<Node>()));
    Routes::new("nodes")
        .at("/v1/nodes", nodes)
        .at("/v1/nodes/detail", [detail])
        .at("/v1/nodes/{node}", node)
        .at("/v1/nodes/{node}/children", [children::route()])
}

/// `POST /v1/nodes`: enrolls a node.
async fn create(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response, Error> {
    let node = change::enroll(&app, &caller, asked, body).await?;
    info!(node.id = %node.id, "node {} was enrolled", node.label());
    let look = context(&app, asked, &origin);
    let answer = one(StatusCode::CREATED, &caller, &node, FieldSet::all(asked), look);
    Ok(with_location(answer, &format!("{origin}/v1/nodes/{}", node.id)))
}

/// `GET /v1/nodes`: lists nodes with a few fields each.
async fn list(
    caller: Caller,
    State(app): State<App>,
    request: ListRequest,
) -> Result<Response, Error> {
    page(app, caller, DetailLevel::Brief, request).await
}

/// `GET /v1/nodes/detail`: lists nodes with all fields.
async fn list_detail(
    caller: Caller,
    State(app): State<App>,
    request: ListRequest,
) -> Result<Response, Error> {
    page(app, caller, DetailLevel::Detail, request).await
}

/// `GET /v1/nodes/{node}`: shows a node.
async fn show(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    let shown = FieldSet::requested(&mut query, asked)?;
    query.finish()?;
    let node = app.node(&caller, asked, &ident).await?;
    Ok(one(StatusCode::OK, &caller, &node, shown, context(&app, asked, &origin)))
}

/// `PATCH /v1/nodes/{node}`: changes a node.
async fn patch(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    query: Query,
    StrictJson(operations): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let patch = NodePatch::parse(ident, operations, query, asked)?;
    let node = retry_if_stale(|| patch.record(&app, &caller, asked)).await?;
    if node.leaving.is_some() {
        app.conductor.wake(node.id);
    }
    let look = context(&app, asked, &origin);
    Ok(one(StatusCode::OK, &caller, &node, FieldSet::all(asked), look))
}

/// `DELETE /v1/nodes/{node}`: deletes a node.
async fn forget(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode, Error> {
    let forced = forced(&mut query);
    retry_if_stale(|| async {
        let node = app.node(&caller, asked, &ident).await?;
        check_delete(&node)?;
        app.check_drained(&caller, &node, &forced).await?;
        app.store.delete_node(&node).await?;
        app.conductor.forget(node.id);
        info!(node.id = %node.id, "node {} was forgotten", node.label());
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers with one page of a list of nodes.
async fn page(
    app: App,
    caller: Caller,
    level: DetailLevel,
    request: ListRequest,
) -> Result<Response, Error> {
    let mut rest = request.query.clone();
    let shown = FieldSet::listed(&mut rest, level, request.asked)?;
    let (list, page) = list_query::parse::<Node>(rest, request.asked)?;
    let filter = list.filter(&app, &caller).await?;
    let reader = Arc::new((app, caller, request, filter));
    let (app, _, request, _) = &*reader.clone();
    list_of("nodes", &page, request.of(app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (app, caller, request, filter) = &*reader;
            let listed = match filter {
                Some(filter) => app.store.list_nodes_part(filter, &page, part).await?,
                None => PageRows { found: Vec::new(), more: None },
            };
            let look = context(app, request.asked, &request.origin);
            let view = |node| view_of(caller, node, shown, look);
            let id = |node: &Node| node.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// How nodes are shown.
fn context<'a>(app: &'a App, asked: Microversion, origin: &'a Origin) -> Context<'a> {
    Context { asked, origin, conductor: app.conductor.hostname() }
}

/// A node in the form that this caller sees.
fn view_of<'a>(
    caller: &Caller,
    node: &'a Node,
    shown: FieldSet<Node>,
    context: Context<'a>,
) -> View<'a, Node> {
    let is_lent = relation(caller, node) == Some(Relation::Lessee);
    let shown = if is_lent { shown.for_lessees() } else { shown };
    View { it: node, shown, context }
}

/// Answers with one node.
fn one(
    status: StatusCode,
    caller: &Caller,
    node: &Node,
    shown: FieldSet<Node>,
    context: Context<'_>,
) -> Response {
    json_of(status, &view_of(caller, node, shown, context), shown.len() * BYTES_A_FIELD)
}
