//! `/v1/clusters`: creates, lists, shows, changes and deletes clusters.

mod body;
mod view;

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use cluster_core::{
    Cluster, ClusterSort, ClusterUuid, DesiredState, NodeGroup, Page, check_not_deleting, resize,
};
use cluster_store::{ClusterChange, StoreError};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, Direction, JsonShape, ListPart, Microversion, Op, Operation, Origin, Paging,
    PathParam, Query, Route, Routes, StrictJson, json,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::PartialSchema;

use crate::accepted::{accepted, accepted_schema};
use crate::app::App;
use crate::error::Error;
use crate::listing::list_of;
use crate::template::{SORTED, unsorted};
use crate::{microversion as since, openapi};
pub(crate) use body::{CheckedCluster, NewCluster};
use view::{Brief, View};

/// Returns the routes of clusters.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List clusters", list)
            .query_parameters(SORTED)
            .returns(JsonShape::page("clusters", view::brief())),
        Route::post("Create a cluster", create)
            .reads(NewCluster::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(accepted_schema())
            .refuses([StatusCode::NOT_FOUND]),
    ];
    let one = [
        Route::get("Show a cluster", show).returns(view::shape()),
        Route::patch("Change a cluster", patch)
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
                .returns(JsonShape::page("clusters", view::shape()))],
        )
        .at("/v1/clusters/{cluster}", one)
}

/// `POST /v1/clusters`: creates a cluster.
async fn create(
    caller: Caller,
    State(app): State<App>,
    asked_for: Microversion,
    origin: Origin,
    StrictJson(body): StrictJson<NewCluster>,
) -> Result<Response, Error> {
    let CheckedCluster { cluster, mut groups } = body.into_order(&app, &caller, asked_for).await?;
    let cluster = Cluster { asked_by: openstack_api::request_id(), ..cluster };
    let unmeasured = app.measure(&cluster, &mut groups).await;
    let said = format!("cluster of {} members requested", machines(&groups));
    let event = app.request_event(&cluster, "CreateAsked", said);
    let within = Some(&app.settings.quotas);
    match app.store.insert_cluster(&cluster, &groups, &[event], within).await {
        Ok(Ok(())) => {}
        Ok(Err(denial)) => return Err(Error::Denied(denial, unmeasured)),
        Err(StoreError::NoOwner { .. }) => {
            return Err(ApiError::bad_field(
                "cluster_template_id",
                "the template was deleted meanwhile",
            )
            .into());
        }
        Err(error) => return Err(error.into()),
    }
    app.conductor.wake(cluster.id);
    let mut answer = accepted(&cluster);
    if let Ok(location) = HeaderValue::try_from(format!("{origin}/v1/clusters/{}", cluster.id)) {
        answer.headers_mut().insert(LOCATION, location);
    }
    Ok(answer)
}

fn machines(groups: &[NodeGroup]) -> u32 {
    groups.iter().map(NodeGroup::node_count).sum()
}

/// `GET /v1/clusters`: a page of clusters, each with its main fields.
async fn list(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    page(&app, &caller, asked, &origin, uri.path(), query, DetailLevel::Brief).await
}

/// `GET /v1/clusters/detail`: a page of clusters, each with all fields.
async fn list_detail(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    page(&app, &caller, asked, &origin, uri.path(), query, DetailLevel::Detail).await
}

/// The fields of each cluster in a list.
#[derive(Clone, Copy)]
enum DetailLevel {
    Brief,
    Detail,
}

/// A cluster in a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Brief(Brief<'a>),
    Detail(View<'a>),
}

/// Responds with one page of a list.
async fn page(
    app: &App,
    caller: &Caller,
    asked: Microversion,
    origin: &Origin,
    path: &str,
    query: Query,
    extent: DetailLevel,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let paging = Paging::take(&mut rest)?;
    rest.finish()?;
    let sort = match paging.sort_key.as_deref() {
        None | Some("created_at") => ClusterSort::CreatedAt,
        Some("id" | "uuid") => ClusterSort::Id,
        Some("name") => ClusterSort::Name,
        Some(_) => return Err(unsorted().into()),
    };
    let descending = paging.direction == Direction::Descending;
    let page = Page { limit: paging.limit, marker: paging.marker, sort, descending };
    let reader = Arc::new((app.store.clone(), app.scope(caller), origin.clone(), app.clock));
    list_of("clusters", &page, (app, origin, path, &query), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, scope, origin, clock) = &*reader;
            let listed = store.list_clusters_part(scope, &page, part).await?;
            let ids: Vec<ClusterUuid> = listed.found.iter().map(|cluster| cluster.id).collect();
            let groups = store.groups_of_each(&ids).await?;
            let now = clock();
            let id = |cluster: &Cluster| cluster.id.into_untyped_uuid();
            let part = ListPart::of(
                &listed.found,
                id,
                |cluster| {
                    let groups = groups.get(&cluster.id).map(Vec::as_slice).unwrap_or_default();
                    let view = View { cluster, groups, origin, asked, now };
                    match extent {
                        DetailLevel::Brief => Shown::Brief(Brief { view }),
                        DetailLevel::Detail => Shown::Detail(view),
                    }
                },
                listed.more,
            );
            Ok(part?)
        })
    })
    .await
}

/// `GET /v1/clusters/{cluster}`: a cluster with all fields.
async fn show(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let cluster = app.cluster(&caller, &ident).await?;
    let groups = app.store.groups_of(cluster.id).await?;
    let now = (app.clock)();
    let view = View { cluster: &cluster, groups: &groups, origin: &origin, asked, now };
    Ok(json(StatusCode::OK, &view))
}

/// `PATCH /v1/clusters/{cluster}`: changes `node_count`, the only field that Magnum permits to change.
async fn patch(
    caller: Caller,
    State(app): State<App>,
    asked_for: Microversion,
    PathParam(ident): PathParam<String>,
    StrictJson(patch): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let count = node_count(patch)?;
    let cluster = app
        .change(&caller, &ident, |cluster, groups| {
            check_not_deleting(&cluster)?;
            let Some(count) = count else { return Ok(ClusterChange::of(cluster)) };
            since::check_zero(count, asked_for)?;
            let workers = default_workers(&groups)?;
            let resized = resize(workers, count, &[])?;
            let said = format!("{} resized to {count} members", workers.name);
            let events = vec![app.request_event(&cluster, "ResizeAsked", said)];
            let cluster = Cluster { asked_at: (app.clock)(), ..cluster };
            Ok(ClusterChange { changed: vec![resized], events, ..ClusterChange::of(cluster) })
        })
        .await?;
    Ok(accepted(&cluster))
}

/// The `node_count` that `patch` sets. Removing the field means 1, the default.
fn node_count(patch: Vec<Operation>) -> Result<Option<u32>, ApiError> {
    let mut count = None;
    for operation in patch {
        let field = operation.field()?;
        if field != "node_count" || operation.path != "/node_count" {
            let path: String = operation.path.chars().take(64).collect();
            let why = "cannot be changed; /node_count can, and node groups have their own routes";
            return Err(ApiError::bad_field(&path, why));
        }
        count = match (operation.op, operation.value) {
            (Op::Remove, _) => Some(1),
            (Op::Add | Op::Replace, value) => {
                let body =
                    Map::from_iter([("node_count".to_owned(), value.unwrap_or(Value::Null))]);
                Some(body::read_count(body)?)
            }
        };
    }
    Ok(count)
}

/// Finds the default group of workers, which every cluster is created with.
pub(crate) fn default_workers(groups: &[NodeGroup]) -> Result<&NodeGroup, ApiError> {
    let is_master = |group: &NodeGroup| group.role == cluster_core::GroupRole::Master;
    let workers = groups.iter().find(|group| group.is_default && !is_master(group));
    workers.ok_or_else(|| ApiError::broken("the cluster has no default workers"))
}

/// `DELETE /v1/clusters/{cluster}`: records the wish. The conductor removes the cluster once all its cloud objects are gone.
async fn delete(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode, Error> {
    app.change(&caller, &ident, |cluster, _| {
        if cluster.desire == DesiredState::Gone {
            return Ok(ClusterChange::of(cluster));
        }
        let events =
            vec![app.request_event(&cluster, "DeleteAsked", "deletion requested".to_owned())];
        let cluster = Cluster { desire: DesiredState::Gone, asked_at: (app.clock)(), ..cluster };
        Ok(ClusterChange { events, ..ClusterChange::of(cluster) })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
