//! `/v1/nodes`: creates, lists, shows, changes and deletes nodes.

mod change;
mod children;
mod field;
mod imported;
mod list;
mod owner_and_lessee;
mod view;
mod write;

use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{Node, check_delete};
use baremetal_store::{NodeDetail, PageRows};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    JsonPatch, JsonShape, ListPart, ListRequest, Origin, PathParam, Query, Relation, Route, Routes,
    StrictJson, json_of, with_location,
};
use serde_json::{Map, Value};
use tracing::info;
use uuid::Uuid;

use crate::app::App;
use crate::error::Result;
use crate::field::{DetailLevel, FieldSet};
use crate::listing::list_of;
use crate::request::{Request, forced, relation, retry_if_stale};
use crate::view::View;
use crate::{list_query, openapi, rule};
use change::NodePatch;

pub(crate) use change::{check_glance_access, check_group, parent};
pub(crate) use children::check_children;
pub(crate) use owner_and_lessee::check as check_owner_and_lessee;
pub(crate) use view::{last_error, state_word};

/// The average size of a field in bytes, measured on nodes whose objects contain little.
const BYTES_A_FIELD: usize = 40;

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
            .only_records()
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
            .only_records()
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
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let node = change::enroll(&request, body).await?;
    info!(node.id = %node.id, "node {} was enrolled", node.label());
    let answer = one(&request, StatusCode::CREATED, &node, FieldSet::all(request.asked), &origin);
    Ok(with_location(answer, &format!("{origin}/v1/nodes/{}", node.id)))
}

/// `GET /v1/nodes`: lists nodes with a few fields each.
async fn list(request: Request, paging: ListRequest) -> Result<Response> {
    page(request, paging, DetailLevel::Brief, None).await
}

/// `GET /v1/nodes/detail`: lists nodes with all fields.
async fn list_detail(request: Request, paging: ListRequest) -> Result<Response> {
    page(request, paging, DetailLevel::Detail, None).await
}

/// `GET /v1/nodes/{node}`: shows a node.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    let node = request.node(&ident).await?;
    Ok(one(&request, StatusCode::OK, &node, shown, &origin))
}

/// `PATCH /v1/nodes/{node}`: changes a node.
async fn patch(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    query: Query,
    JsonPatch(operations): JsonPatch,
) -> Result<Response> {
    let patch = NodePatch::parse(ident, operations, query, request.asked)?;
    let patch = patch.find_parent(&request).await?;
    let node = retry_if_stale(|| patch.record(&request)).await?;
    if node.leaving.is_some() {
        request.app.conductor.wake(node.id);
    }
    let mut view = view_of(&request, &node, FieldSet::all(request.asked), &origin);
    view.context.is_changed = true;
    Ok(json_of(StatusCode::OK, &view, view.shown.len() * BYTES_A_FIELD))
}

/// `DELETE /v1/nodes/{node}`: deletes a node.
async fn forget(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode> {
    let forced = forced(&mut query);
    retry_if_stale(|| async {
        let node = request.node(&ident).await?;
        check_delete(&node)?;
        request.check_drained(&node, &forced).await?;
        request.app.store.delete_node(&node).await?;
        request.app.conductor.forget(node.id);
        info!(node.id = %node.id, "node {} was forgotten", node.label());
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers with one page of a list of nodes; of the nodes in one chassis, if it is given.
pub(crate) async fn page(
    request: Request,
    paging: ListRequest,
    level: DetailLevel,
    chassis: Option<Uuid>,
) -> Result<Response> {
    let mut rest = paging.query.clone();
    let shown = FieldSet::listed(&mut rest, level, request.asked)?;
    let (mut list, page) = list_query::parse::<Node>(rest, request.asked)?;
    list.filter.chassis = chassis.or(list.filter.chassis);
    let conductor = list.conductor.clone();
    // The summary of a node has no conductor group.
    let is_brief = shown.is_brief() && conductor.is_none();
    let detail = if is_brief { NodeDetail::Summary } else { NodeDetail::Whole };
    let filter = list.filter(&request).await?;
    let paging = list_query::linked::<Node>(paging, level);
    let reader = Arc::new((request, paging, filter, conductor));
    let (request, paging, ..) = &*reader.clone();
    list_of("nodes", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (request, paging, filter, conductor) = &*reader;
            let listed = match filter {
                Some(filter) => {
                    request.app.store.list_nodes_part(filter, &page, part, detail).await?
                }
                None => PageRows { found: Vec::new(), more: None },
            };
            let view = |node| view_of(request, node, shown, &paging.origin);
            let has_conductor = |node: &&Node| match conductor {
                None => true,
                Some(name) => {
                    request.app.conductor.conductor_of(node).as_deref() == Some(name.as_str())
                }
            };
            // As in Ironic, the page counts the nodes of other conductors too.
            let read = listed.found.last().map(|last| last.id.into_untyped_uuid());
            let read = read.map(|last| (listed.found.len(), last));
            let chosen = listed.found.iter().filter(has_conductor).map(view);
            Ok(ListPart::chosen(chosen, read, listed.more)?)
        })
    })
    .await
}

/// A node in the form that this caller sees.
fn view_of<'a>(
    request: &'a Request,
    node: &'a Node,
    shown: FieldSet<Node>,
    origin: &'a Origin,
) -> View<'a, Node> {
    let is_lent = relation(&request.caller, node) == Some(Relation::Lessee);
    let shown = if is_lent { shown.for_lessees() } else { shown };
    View { it: node, shown, context: request.context(origin) }
}

fn one(
    request: &Request,
    status: StatusCode,
    node: &Node,
    shown: FieldSet<Node>,
    origin: &Origin,
) -> Response {
    json_of(status, &view_of(request, node, shown, origin), shown.len() * BYTES_A_FIELD)
}
