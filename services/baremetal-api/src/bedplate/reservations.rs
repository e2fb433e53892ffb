//! `/bedplate/v1/reservations`: reserves, lends and installs a whole node for a person.

mod body;
mod view;

use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{
    AfterDrain, Allocation, AllocationFilter, AllocationSort, AllocationUuid, HistoryEntry,
    LendError, Node, NodeIdent, NodeLease, NodeName, NodePool, Page, ReservationRequest, Verb,
    WorkUuid, extend, node_with_image, request_verb, undo, with_stage_taken,
};
use baremetal_store::ReserveOutcome;
use http::StatusCode;
use jiff::Timestamp;
use lease::LeaseStage;
use openstack_api::{
    ApiError, Direction, JsonShape, ListPart, Origin, Paging, PathParam, Query, Route, Routes,
    Shaped, StrictJson, json,
};
use tracing::info;
use utoipa::PartialSchema;

use super::lease_term::LeaseChange;
use crate::app::App;
use crate::error::Result;
use crate::listing::list_of;
use crate::node::check_glance_access;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::rule;
use body::ReservationBody;
use view::View;

pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List reservations", list)
            .with_rule(rule::SEE_ALLOCATION)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir"])
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page("reservations", View::shape())),
        Route::post("Reserve a node and install it", create)
            .with_rule(rule::ALLOCATE)
            .reads(ReservationBody::schema())
            .answers(StatusCode::CREATED)
            .returns(View::shape()),
    ];
    let one = [
        Route::get("Show a reservation", show)
            .with_rule(rule::SEE_ALLOCATION)
            .returns(View::shape()),
        Route::delete("Return a reserved node", give_back)
            .with_rule(rule::ALLOCATE)
            .refuses([StatusCode::CONFLICT])
            .answers(StatusCode::ACCEPTED)
            .tells_nothing(),
    ];
    let longer = Route::put("Keep a reserved machine for longer", keep)
        .with_rule(rule::ALLOCATE)
        .reads(LeaseChange::schema())
        .returns(View::shape());
    let undo = Route::post("Undo the end of a reservation", undo_end);
    let undo = undo.with_rule(rule::ALLOCATE).returns(View::shape());
    Routes::new("bedplate")
        .at("/bedplate/v1/reservations", all)
        .at("/bedplate/v1/reservations/{reservation}", one)
        .at("/bedplate/v1/reservations/{reservation}/lease", [longer])
        .at("/bedplate/v1/reservations/{reservation}/lease/undo", [undo])
}

/// `POST /bedplate/v1/reservations`: reserves a node and starts its installation.
async fn create(
    request: Request,
    StrictJson(wish): StrictJson<ReservationBody>,
) -> Result<Response> {
    let app = &request.app;
    let now = (app.clock)();
    let (allocation, order) = requested(&request, wish, now).await?;
    let made = record(app, &allocation, &order, now).await?;
    let node = node_of(app, &made).await?;
    if let Some(node) = &node {
        app.conductor.wake(node.id);
        info!(node.id = %node.id, "node {} is reserved and lent by {}", node.label(), made.id);
    }
    Ok(json(StatusCode::CREATED, &View::of(app, &made, node.as_ref())))
}

/// Returns the criteria for the node, and the installation and the lease that the body asks for.
async fn requested(
    request: &Request,
    wish: ReservationBody,
    now: Timestamp,
) -> Result<(Allocation, ReservationRequest)> {
    let (app, user) = (&request.app, request.caller.user());
    let id = AllocationUuid::new_v4();
    let instance_info = wish.instance_info(id)?;
    // Mistakes in the image are reported before a node is chosen.
    let image = node_with_image(&instance_info);
    let checked = app.conductor.check_deploy(&image);
    checked.map_err(|why| body::to_reservation_field(&why.to_string()))?;
    check_glance_access(request, None, &image).await?;
    app.conductor.check_glance_image(&image).await?;
    app.conductor.check_oci_image(&image).await?;
    let lease = wish.granted_lease(app.settings.reservations.lease, now)?;
    let allocation = wish.allocation(id, request.caller.project(), user, now)?;
    let by = user.unwrap_or_default().to_owned();
    let lending = NodeLease { lease, by, notify: wish.notify, reserved: true, drain: None };
    let order = ReservationRequest { instance_info, lending, work: WorkUuid::new_v4() };
    Ok((allocation, order))
}

/// Reserves a node that fits, within the project's limit.
async fn record(
    app: &App,
    allocation: &Allocation,
    order: &ReservationRequest,
    now: Timestamp,
) -> Result<Allocation> {
    let pool = NodePool::Lendable(allocation.owner.clone());
    let most = app.settings.reservations.nodes_per_project;
    match app.store.reserve(allocation, &pool, order, most, now).await? {
        ReserveOutcome::Done(made) => Ok(*made),
        ReserveOutcome::Full { used } => Err(full(used, most).into()),
        ReserveOutcome::NoNode(why) => Err(ApiError::conflict(why).into()),
    }
}

fn full(used: u64, most: u32) -> ApiError {
    let why = match most {
        0 => "nodes: projects have no quota for nodes in this service".to_owned(),
        most => format!("nodes: the project uses {used} nodes of its limit of {most}"),
    };
    ApiError::new(StatusCode::FORBIDDEN, why)
}

/// `GET /bedplate/v1/reservations`: lists reservations.
async fn list(request: Request, origin: Origin, query: Query) -> Result<Response> {
    let page = page_of(query.clone())?;
    let filter = AllocationFilter {
        reserved: Some(true),
        seen_by: visible_project(&request.caller),
        ..AllocationFilter::default()
    };
    let reader = Arc::new((request.app.clone(), filter));
    let at = (&request.app, &origin, "/bedplate/v1/reservations", &query);
    list_of("reservations", &page, at, move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (app, filter) = &*reader;
            let listed = app.store.list_allocations_and_nodes_part(filter, &page, part).await?;
            let part = ListPart::of(
                &listed.found,
                |(it, _)| it.id,
                |(it, node)| View::of(app, it, node.as_ref()),
                listed.more,
            );
            Ok(part?)
        })
    })
    .await
}

/// The page that the query asks for. Reservations have a fixed order.
fn page_of(mut query: Query) -> Result<Page<AllocationSort>, ApiError> {
    let paging = Paging::take(&mut query)?;
    query.finish()?;
    if paging.sort_key.is_some() {
        let problem = "reservations are always sorted by their creation";
        return Err(ApiError::bad_field("sort_key", problem));
    }
    Ok(Page {
        limit: paging.limit,
        marker: paging.marker,
        sort: AllocationSort::Creation,
        descending: paging.direction == Direction::Descending,
    })
}

/// `GET /bedplate/v1/reservations/{reservation}`: shows a reservation.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let (found, node) = find(&request, &ident).await?;
    Ok(json(StatusCode::OK, &View::of(&request.app, &found, node.as_ref())))
}

/// `DELETE /bedplate/v1/reservations/{reservation}`: gives the node back; it is powered off and erased, and then available again.
async fn give_back(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    let app = &request.app;
    let work = WorkUuid::new_v4();
    let decide = |node: &Node| {
        let now = (app.clock)();
        let (ended, _) = with_stage_taken(node, LeaseStage::Delete, now);
        let asked = request_verb(&ended, Verb::Undeploy, work, now);
        let asked = asked.map_err(|why| ApiError::conflict(why.to_string()))?;
        // The lease of a compute host ends once the host is drained and the machine is off. A drain that fails leaves the lease as it is.
        let left = request.with_drain_request(node, AfterDrain::Undeploy, None, &[]);
        Ok::<_, ApiError>(left.unwrap_or(asked))
    };
    let (_, node) = find(&request, &ident).await?;
    if let Some(node) = &node {
        decide(node)?;
        request.check_leave(node, &[]).await?;
    }
    retry_if_stale(|| async {
        let (found, node) = find(&request, &ident).await?;
        let Some(node) = node else { return Err(gone(&ident).into()) };
        let (mut asked, entry) = decide(&node)?;
        asked.updated_at = Some((app.clock)());
        app.store
            .update_node(&asked, &[entry.by(request.caller.user(), request.caller.project())])
            .await?;
        app.conductor.wake(node.id);
        info!(node.id = %node.id, "node {} is returned by {}", node.label(), found.id);
        Ok(())
    })
    .await?;
    Ok(StatusCode::ACCEPTED)
}

/// `PUT /bedplate/v1/reservations/{reservation}/lease`: extends the lease of a reservation.
async fn keep(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(wanted): StrictJson<LeaseChange>,
) -> Result<Response> {
    let (by, terms) =
        (request.caller.user().unwrap_or_default(), request.app.settings.reservations.lease);
    change(&request, &ident, |node, now| {
        let until = wanted.end(terms, now)?;
        extend(node, until, by, terms, now).map_err(refused)
    })
    .await
}

/// `POST /bedplate/v1/reservations/{reservation}/lease/undo`: undoes the end of the lease, within the undo window.
async fn undo_end(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let (by, terms) =
        (request.caller.user().unwrap_or_default(), request.app.settings.reservations.lease);
    let schedule = request.app.conductor.schedule();
    change(&request, &ident, |node, now| undo(node, by, schedule, terms, now).map_err(refused))
        .await
}

fn refused(why: LendError) -> ApiError {
    ApiError::conflict(format!("lease: {why}"))
}

/// Changes the node of a reservation, and answers with the changed reservation.
async fn change(
    request: &Request,
    ident: &str,
    decide: impl Fn(&Node, Timestamp) -> Result<(Node, HistoryEntry), ApiError>,
) -> Result<Response> {
    let (found, node) = retry_if_stale(|| async {
        let now = (request.app.clock)();
        let (found, node) = find(request, ident).await?;
        let Some(node) = node else { return Err(gone(ident).into()) };
        let (mut changed, entry) = decide(&node, now)?;
        changed.updated_at = Some(now);
        let written = request
            .app
            .store
            .update_node(&changed, &[entry.by(request.caller.user(), request.caller.project())])
            .await?;
        request.app.conductor.wake(written.id);
        Ok((found, written))
    })
    .await?;
    Ok(json(StatusCode::OK, &View::of(&request.app, &found, Some(&node))))
}

fn gone(ident: &str) -> ApiError {
    let ident: String = ident.chars().take(64).collect();
    ApiError::not_found(format!("Reservation {ident} could not be found."))
}

/// Finds a reservation by UUID or name, with its node, if the caller may access it under the rule of the route.
async fn find(request: &Request, ident: &str) -> Result<(Allocation, Option<Node>)> {
    let found = match ident.parse::<AllocationUuid>() {
        Ok(id) => request.app.store.find_allocation(id).await?,
        Err(_) => {
            let name: NodeName = ident.parse().map_err(|_| gone(ident))?;
            request.app.store.find_allocation_by_name(&name).await?
        }
    };
    let found = found.filter(|it| it.reservation.is_some()).ok_or_else(|| gone(ident))?;
    let relation =
        request.caller.relation_to(found.owner.as_deref(), None).ok_or_else(|| gone(ident))?;
    request.caller.rule().check(&request.caller, relation)?;
    let node = node_of(&request.app, &found).await?;
    Ok((found, node))
}

async fn node_of(app: &App, allocation: &Allocation) -> Result<Option<Node>> {
    match allocation.node {
        Some(id) => Ok(app.store.find_node(&NodeIdent::Id(id)).await?),
        None => Ok(None),
    }
}
