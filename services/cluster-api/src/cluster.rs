//! `/v1/clusters`: creates, lists, shows, changes and deletes clusters.

mod create;
mod field;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use cluster_core::{
    Cluster, ClusterSort, ClusterSpec, ClusterUuid, DesiredState, Event, NodeGroup, Page,
    ReportedHealth, check_not_deleting,
};
use cluster_store::{ClusterChange, PagePart, Position, Scope};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, JsonPatch, JsonShape, ListPart, ListRequest, Microversion, PathParam, Query, Route,
    Routes, StrictJson, flag, with_location,
};

use crate::accepted::{accepted, accepted_schema};
use crate::app::App;
use crate::body::{self, Body, write_flat_patch};
use crate::change::{default_workers, resized};
use crate::error::Result;
use crate::field::DetailLevel;
use crate::listing::{SORTED, list_of, page_of};
use crate::request::Request;
use crate::shown::Context;
use crate::view::{View, answer};
use crate::{microversion as since, openapi};
pub(crate) use create::requested;
use field::ClusterPatch;

pub(crate) fn routes() -> Routes<App> {
    let shape = body::shape::<Cluster>;
    let all = [
        Route::get("List clusters", list)
            .query_parameters(SORTED)
            .returns(JsonShape::page("clusters", shape(DetailLevel::Brief))),
        Route::post("Create a cluster", create)
            .reads(body::schema::<Cluster>())
            .answers(StatusCode::ACCEPTED)
            .returns(accepted_schema())
            .refuses([StatusCode::NOT_FOUND]),
    ];
    let one = [
        Route::get("Show a cluster", show).returns(shape(DetailLevel::Detail)),
        Route::patch("Change a cluster", patch)
            .query_parameters(["rollback"])
            .reads(openapi::patch_body())
            .answers(StatusCode::ACCEPTED)
            .returns(accepted_schema()),
        Route::delete("Delete a cluster", delete).answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("clusters")
        .at("/v1/clusters", all)
        .at(
            "/v1/clusters/detail",
            [Route::get("List clusters with all their fields", list_detail)
                .query_parameters(SORTED)
                .returns(JsonShape::page("clusters", shape(DetailLevel::Detail)))],
        )
        .at("/v1/clusters/{cluster}", one)
}

/// `POST /v1/clusters`: creates a cluster.
async fn create(
    request: Request,
    look: Context,
    StrictJson(body): StrictJson<Body<Cluster>>,
) -> Result<Response> {
    let (cluster, groups) = requested(&request, body).await?;
    let (asked_by, trace) = (openstack_api::request_id(), openstack_api::current_trace());
    let cluster = Cluster { asked_by, trace, ..cluster };
    create::record(&request.app, &cluster, groups).await?;
    request.app.conductor.wake(cluster.id);
    Ok(with_location(accepted(&cluster), &format!("{}/v1/clusters/{}", look.origin, cluster.id)))
}

/// `GET /v1/clusters`: a page of clusters, each with its main fields.
async fn list(request: Request, look: Context, paging: ListRequest) -> Result<Response> {
    page(&request, look, paging, DetailLevel::Brief).await
}

/// `GET /v1/clusters/detail`: a page of clusters, each with all fields.
async fn list_detail(request: Request, look: Context, paging: ListRequest) -> Result<Response> {
    page(&request, look, paging, DetailLevel::Detail).await
}

/// Responds with one page of a list.
async fn page(
    request: &Request,
    look: Context,
    paging: ListRequest,
    level: DetailLevel,
) -> Result<Response> {
    let page = page_of::<Cluster>(&paging.query, "created_at")?;
    let reader = Arc::new((request.app.clone(), request.scope(), look));
    list_of("clusters", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (app, scope, look) = &*reader;
            part_of(app, scope, look, level, &page, part).await
        })
    })
    .await
}

/// Reads one part of a page, with the node groups of its clusters.
async fn part_of(
    app: &App,
    scope: &Scope,
    look: &Context,
    level: DetailLevel,
    page: &Page<ClusterSort>,
    part: PagePart,
) -> Result<ListPart<Position>> {
    let listed = app.store.list_clusters_part(scope, page, part).await?;
    let ids: Vec<ClusterUuid> = listed.found.iter().map(|cluster| cluster.id).collect();
    let groups = app.store.groups_of_each(&ids).await?;
    let id = |cluster: &Cluster| cluster.id.into_untyped_uuid();
    let view = |cluster| {
        let groups = groups_of(&groups, cluster);
        View::<Cluster> { it: ClusterSpec { cluster, groups }, level, context: look }
    };
    Ok(ListPart::of(&listed.found, id, view, listed.more)?)
}

fn groups_of<'g>(
    groups: &'g BTreeMap<ClusterUuid, Vec<NodeGroup>>,
    cluster: &Cluster,
) -> &'g [NodeGroup] {
    groups.get(&cluster.id).map(Vec::as_slice).unwrap_or_default()
}

/// `GET /v1/clusters/{cluster}`: a cluster with all fields.
async fn show(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let groups = request.app.store.groups_of(cluster.id).await?;
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    Ok(answer::<Cluster>(StatusCode::OK, spec, &look))
}

/// The refusal of a change of any other field than those that Magnum permits to change.
const UNCHANGEABLE: &str = "cannot be changed; /node_count, /health_status and /health_status_reason can, and node groups have their own \
                            routes";

/// `PATCH /v1/clusters/{cluster}`: changes the number of default workers, or records the health that an auto-healer reports.
async fn patch(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    request.cluster(&ident).await?;
    check_rollback(&mut query, look.asked)?;
    query.finish()?;
    let mut asked = ClusterPatch::default();
    write_flat_patch::<Cluster>(patch, UNCHANGEABLE, &mut asked)?;
    let change = request.change(&ident, |cluster, groups| {
        check_not_deleting(&cluster)?;
        let (cluster, event) = with_report(&request, cluster, &asked);
        let mut change = match asked.workers {
            None => ClusterChange::of(cluster),
            Some(count) => {
                since::check_zero(count, look.asked)?;
                resized(&request.app, cluster, default_workers(&groups)?, count, &[])?
            }
        };
        change.events.extend(event);
        Ok(change)
    });
    Ok(accepted(&change.await?))
}

/// Returns the cluster with the health that the client reports, and an event if the report has another health.
fn with_report(
    request: &Request,
    cluster: Cluster,
    asked: &ClusterPatch,
) -> (Cluster, Option<Event>) {
    let (status, reason) = (asked.health_status, asked.health_reason.clone());
    let before = cluster.reported_health.as_ref().map(|it| it.status);
    let report = ReportedHealth::patched(cluster.reported_health.clone(), status, reason);
    let after = report.as_ref().map(|it| it.status);
    let said = || match after {
        Some(health) => format!("{} reports the health {health}", request.user()),
        None => format!("{} took the reported health back", request.user()),
    };
    let event =
        (before != after).then(|| request.app.request_event(&cluster, "HealthReported", said()));
    (Cluster { reported_health: report, ..cluster }, event)
}

/// Refuses `?rollback=true`: the cloud is asked again and again until the cluster has its new size, or another size is requested. As in
/// Magnum, the parameter is unknown in older versions.
fn check_rollback(query: &mut Query, asked: Microversion) -> Result<(), ApiError> {
    if !asked.has(since::ROLLBACK) {
        return Ok(());
    }
    let Some(raw) = query.take("rollback") else { return Ok(()) };
    match flag("rollback", &raw)? {
        false => Ok(()),
        true => {
            let why = "clusterd retries a failed update and does not roll it back: set /node_count to the former number";
            Err(ApiError::bad_field("rollback", why))
        }
    }
}

/// `DELETE /v1/clusters/{cluster}`: records the wish. The conductor removes the cluster once all its cloud objects are gone.
async fn delete(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    request
        .change(&ident, |cluster, _| {
            if cluster.desire == DesiredState::Gone {
                return Ok(ClusterChange::of(cluster));
            }
            let event = request.app.request_event(
                &cluster,
                "DeleteRequested",
                "deletion requested".to_owned(),
            );
            let cluster =
                Cluster { desire: DesiredState::Gone, asked_at: (request.app.clock)(), ..cluster };
            Ok(ClusterChange { events: vec![event], ..ClusterChange::of(cluster) })
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
