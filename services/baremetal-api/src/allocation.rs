//! `/v1/allocations`: reserves a node of a requested kind, and shows which node was chosen.

mod create;
mod field;

use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{
    Allocation, AllocationFilter, AllocationUuid, Node, NodeIdent, NodeName, check_release,
};
use baremetal_store::PageRows;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Hidden, JsonPatch, JsonShape, ListPart, ListRequest, Origin, PathParam, Query, Route,
    Routes, StrictJson, json, with_location,
};
use serde_json::{Map, Value};
use tracing::info;

use crate::app::App;
use crate::error::Result;
use crate::field::{DetailLevel, FieldSet, in_body};
use crate::listing::list_of;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::value::malformed;
use crate::view::View;
use crate::write::patched;
use crate::{list_query, microversion as since, openapi, rule};
use field::AllocationList;

pub(crate) fn routes() -> Routes<App> {
    // A lessee may request and see allocations too.
    let all = [
        Route::get("List allocations", list)
            .with_rule(rule::READ)
            .query_parameters(list_query::PAGING)
            .query_parameters(list_query::names::<Allocation>())
            .returns(JsonShape::page("allocations", openapi::shape::<Allocation>())),
        Route::post("Create an allocation", create)
            .with_rule(rule::USE)
            .reads(openapi::body::<Allocation>([("node", since::ALLOCATION_BACKFILL)]))
            .answers(StatusCode::CREATED)
            .returns(openapi::shape::<Allocation>()),
    ];
    let one = [
        Route::get("Show an allocation", show)
            .with_rule(rule::SEE_ALLOCATION)
            .query_parameters(["fields"])
            .returns(openapi::shape::<Allocation>()),
        Route::delete("Delete an allocation", delete)
            .with_rule(rule::ALLOCATE)
            .answers(StatusCode::NO_CONTENT),
    ];
    let patch = Route::patch("Change an allocation", patch)
        .with_rule(rule::ALLOCATE)
        .reads(openapi::patch_body())
        .returns(openapi::shape::<Allocation>())
        .hidden_before(since::ALLOCATION_UPDATE, Hidden::MethodOfHandler);
    // The rule checks the caller's relation to the node; the handlers check the relation to the allocation as well.
    let of_node = [
        Route::get("Show a node's allocation", show_of_node)
            .with_rule(rule::READ)
            .query_parameters(["fields"])
            .returns(openapi::shape::<Allocation>()),
        Route::delete("Delete a node's allocation", delete_of_node)
            .with_rule(rule::USE)
            .answers(StatusCode::NO_CONTENT),
    ];
    let seen = |handle: Route<App>| handle.since(since::ALLOCATIONS);
    let changed =
        |handle: Route<App>| handle.hidden_before(since::ALLOCATIONS, Hidden::MethodOfHandler);
    let hidden = |handle: Route<App>| handle.hidden_before(since::ALLOCATIONS, Hidden::Path);
    let ([list, create], [show, delete]) = (all, one);
    Routes::new("allocations")
        .at("/v1/allocations", [seen(list), changed(create)])
        .at("/v1/allocations/{allocation}", [seen(show), changed(delete), patch])
        .at("/v1/nodes/{node}/allocation", of_node.map(hidden))
}

/// `POST /v1/allocations`: reserves a node.
async fn create(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let wanted = create::requested(&request, body).await?;
    let shown = create::record(&request.app, wanted).await?;
    let view = view_of(&request, &shown, FieldSet::all(request.asked), &origin);
    let url = format!("{origin}/v1/allocations/{}", shown.id);
    Ok(with_location(json(StatusCode::CREATED, &view), &url))
}

/// `GET /v1/allocations`: lists allocations.
async fn list(request: Request, paging: ListRequest) -> Result<Response> {
    let mut rest = paging.query.clone();
    let shown = FieldSet::requested(&mut rest, request.asked)?;
    let (list, page) = list_query::parse::<Allocation>(rest, request.asked)?;
    let filter = narrowed(&request, list).await?;
    let paging = list_query::linked::<Allocation>(paging, DetailLevel::Detail);
    let reader = Arc::new((request, paging, filter));
    let (request, paging, _) = &*reader.clone();
    list_of("allocations", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (request, paging, filter) = &*reader;
            let listed = match filter {
                Some(filter) => {
                    request.app.store.list_allocations_part(filter, &page, part).await?
                }
                None => PageRows { found: Vec::new(), more: None },
            };
            let view = |allocation| view_of(request, allocation, shown, &paging.origin);
            let id = |allocation: &Allocation| allocation.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// The filter of the list, without the allocations that the caller does not see. `None` is a list without allocations.
async fn narrowed(request: &Request, list: AllocationList) -> Result<Option<AllocationFilter>> {
    let AllocationList { mut filter, node, is_empty } = list;
    if let Some(ident) = node {
        let node = request.node(&ident).await.map_err(in_body("node"))?;
        filter.node = Some(node.id);
    }
    filter.seen_by = visible_project(&request.caller);
    Ok(Some(filter).filter(|_| !is_empty))
}

/// An allocation in the form that clients see.
fn view_of<'a>(
    request: &'a Request,
    allocation: &'a Allocation,
    shown: FieldSet<Allocation>,
    origin: &'a Origin,
) -> View<'a, Allocation> {
    View { it: allocation, shown, context: request.context(origin) }
}

/// `GET /v1/allocations/{allocation}`: shows an allocation.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    let allocation = find(&request, &ident).await?;
    Ok(json(StatusCode::OK, &view_of(&request, &allocation, shown, &origin)))
}

/// `GET /v1/nodes/{node}/allocation`: shows the allocation of a node.
async fn show_of_node(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    // As in Ironic, an unknown node is a wrong parameter, and a node without an allocation is not found.
    let node = request.node(&ident).await.map_err(in_body("node"))?;
    let allocation = find_of_node(&request, &node, &ident).await?;
    Ok(json(StatusCode::OK, &view_of(&request, &allocation, shown, &origin)))
}

/// `PATCH /v1/allocations/{allocation}`: changes an allocation.
async fn patch(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let patched = retry_if_stale(|| async {
        let before = find(&request, &ident).await?;
        let mut after = patched(&before, patch.clone(), request.asked)?;
        after.updated_at = Some((request.app.clock)());
        Ok(request.app.store.update_allocation(&after).await?)
    });
    let allocation = patched.await?;
    let view = view_of(&request, &allocation, FieldSet::all(request.asked), &origin);
    Ok(json(StatusCode::OK, &view))
}

/// `DELETE /v1/allocations/{allocation}`: deletes an allocation.
async fn delete(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    retry_if_stale(|| async { delete_and_free(&request.app, find(&request, &ident).await?).await })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/nodes/{node}/allocation`: deletes the allocation of a node.
async fn delete_of_node(
    request: Request,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode> {
    retry_if_stale(|| async {
        let node = request.node(&ident).await?;
        delete_and_free(&request.app, find_of_node(&request, &node, &ident).await?).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes the allocation and frees its node, unless the node is in use.
async fn delete_and_free(app: &App, allocation: Allocation) -> Result<()> {
    let node = match allocation.node {
        Some(node) => app.store.find_node(&NodeIdent::Id(node)).await?,
        None => None,
    };
    if let Some(node) = &node {
        check_release(node)?;
        // A reservation also holds a lease and counts against a quota, so it has to be released as a whole.
        if allocation.reservation.is_some() {
            let why = "the allocation belongs to a reservation: delete the reservation at /bedplate/v1/reservations instead";
            return Err(ApiError::conflict(why).into());
        }
    }
    app.store.delete_allocation(&allocation, node.as_ref(), (app.clock)()).await?;
    info!("allocation {} was deleted", allocation.id);
    Ok(())
}

/// Finds an allocation by UUID or name, if the caller may access it under the rule of the route.
pub(crate) async fn find(request: &Request, ident: &str) -> Result<Allocation> {
    let missing = || {
        let ident: String = ident.chars().take(64).collect();
        ApiError::not_found(format!("Allocation {ident} could not be found."))
    };
    let found = match ident.parse::<AllocationUuid>() {
        Ok(id) => request.app.store.find_allocation(id).await?,
        Err(_) => {
            let name: NodeName = ident
                .parse()
                .map_err(|_| ApiError::bad_request(malformed(ident, "a UUID or a name")))?;
            request.app.store.find_allocation_by_name(&name).await?
        }
    };
    let allocation = found.ok_or_else(missing)?;
    let relation =
        request.caller.relation_to(allocation.owner.as_deref(), None).ok_or_else(missing)?;
    request.caller.rule().check(&request.caller, relation)?;
    Ok(allocation)
}

/// The allocation of a node, if the caller may access the allocation.
async fn find_of_node(request: &Request, node: &Node, ident: &str) -> Result<Allocation> {
    let found = match node.allocation {
        Some(id) => request.app.store.find_allocation(id).await?,
        None => None,
    };
    let relation =
        |it: &Allocation| request.caller.relation_to(it.owner.as_deref(), None).is_some();
    found.filter(relation).ok_or_else(|| {
        let ident: String = ident.chars().take(64).collect();
        ApiError::not_found(format!("Allocation for node {ident} was not found")).into()
    })
}
