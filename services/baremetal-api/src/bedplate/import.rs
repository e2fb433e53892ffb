//! `/bedplate/v1/import/…`: records of another service, kept with their ids, times and states. No machine is touched.
//!
//! Ordinary requests cannot do this: a new node begins in `enroll`, and each way from there to `active` or `available` talks to the BMC,
//! cleans the disks or sets new times.

mod history;
mod node;
mod result;

use axum::response::Response;
use baremetal_core::{
    Allocation, AllocationState, AllocationUuid, Chassis, DeployTemplate, InspectionRule, Runbook,
    Stored,
};
use baremetal_store::ImportEffect;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, JsonShape, PathParam, Query, Route, Routes, StrictJson};
use serde_json::{Map, Value};
use tracing::info;

use self::result::{ImportResult, effect, id_of};
use crate::app::App;
use crate::error::Result;
use crate::inspection_rule::check_rule_count;
use crate::request::Request;
use crate::rule;
use crate::stored::Served;
use crate::write::import;

pub(crate) fn routes() -> Routes<App> {
    let nodes = Route::put("Import a node", node::put);
    let chassis = Route::put("Import a chassis", put_stored::<Chassis>);
    let templates = Route::put("Import a deploy template", put_stored::<DeployTemplate>);
    let runbooks = Route::put("Import a runbook", put_stored::<Runbook>);
    let rules = Route::put("Import an inspection rule", put_rule);
    let allocations = Route::put("Import an allocation without a node", put_allocation);
    let read = |route: Route<App>| described(route).reads(JsonShape::any_object());
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/import/nodes/{node}",
            [described(nodes).reads(node::body()).max_body(node::BODY_LIMIT)],
        )
        .at("/bedplate/v1/import/chassis/{chassis}", [read(chassis)])
        .at("/bedplate/v1/import/deploy-templates/{template}", [read(templates)])
        .at("/bedplate/v1/import/runbooks/{runbook}", [read(runbooks)])
        .at("/bedplate/v1/import/inspection-rules/{rule}", [read(rules)])
        .at("/bedplate/v1/import/allocations/{allocation}", [read(allocations)])
}

fn described(route: Route<App>) -> Route<App> {
    let results = JsonShape::enumeration(["imported", "present", "checked"]);
    route
        .with_rule(rule::ADMINISTER)
        .query_parameters(["dry_run"])
        .refuses([StatusCode::CONFLICT])
        .returns(JsonShape::object([("result", results)]))
}

/// `PUT /bedplate/v1/import/{chassis,deploy-templates,runbooks}/{id}`: imports a resource that belongs to no node.
async fn put_stored<C: Served>(
    request: Request,
    PathParam(ident): PathParam<String>,
    query: Query,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let (effect, id) = (effect(query)?, id_of(&ident, &body)?);
    let store = &request.app.store;
    if store.find_resource::<C>(id).await?.is_some() {
        return Ok(ImportResult::Present.response());
    }
    let mut it = Stored::new(id, C::default(), (request.app.clock)());
    import(&mut it, body)?;
    if let Some(owner) = it.content.owner() {
        request.app.auth.check_project(&request.caller, "owner", owner).await?;
    }
    if let Some(name) = it.content.name()
        && store.find_resource_by_name::<C>(name).await?.is_some()
    {
        return Err(ApiError::conflict(format!("name: {name:?} is already in use")).into());
    }
    match effect {
        ImportEffect::Check => store.check_resource(&it).await?,
        ImportEffect::Write => {
            store.insert_resource(&it).await?;
            let (_, noun) = C::NAME.split_once(' ').unwrap_or_default();
            info!("{noun} {id} was imported");
        }
    }
    Ok(ImportResult::of(effect).response())
}

/// `PUT /bedplate/v1/import/inspection-rules/{rule}`: imports an inspection rule.
async fn put_rule(
    request: Request,
    path: PathParam<String>,
    query: Query,
    body: StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let PathParam(ident) = &path;
    let known = match ident.parse() {
        Ok(id) => request.app.store.find_resource::<InspectionRule>(id).await?,
        Err(_) => None,
    };
    if known.is_none() {
        check_rule_count(&request.app).await?;
    }
    put_stored::<InspectionRule>(request, path, query, body).await
}

/// `PUT /bedplate/v1/import/allocations/{allocation}`: imports an allocation for which no node was found. All others are imported with their
/// nodes.
async fn put_allocation(
    request: Request,
    PathParam(ident): PathParam<String>,
    query: Query,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let (effect, id) = (effect(query)?, id_of(&ident, &body)?);
    let id = AllocationUuid::from_untyped_uuid(id);
    if request.app.store.find_allocation(id).await?.is_some() {
        return Ok(ImportResult::Present.response());
    }
    let mut allocation = Allocation::new(id, (request.app.clock)());
    import(&mut allocation, body)?;
    if allocation.node.is_some() || allocation.state != AllocationState::Error {
        let why = "an allocation with a node is imported with its node";
        return Err(ApiError::bad_field("node_uuid", why).into());
    }
    if let Some(owner) = &allocation.owner {
        request.app.auth.check_project(&request.caller, "owner", owner).await?;
    }
    request.app.store.import_allocation(&allocation, effect).await?;
    Ok(ImportResult::of(effect).response())
}
