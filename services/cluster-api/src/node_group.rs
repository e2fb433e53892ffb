//! `/v1/clusters/{cluster}/nodegroups`: creates, lists, shows, changes and deletes node groups.

mod body;
mod view;

use axum::extract::State;
use axum::response::Response;
use cluster_core::{
    Cluster, NodeGroup, Refusal, check_another_group, check_group, check_not_deleting,
};
use cluster_store::ClusterChange;
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, JsonShape, Microversion, Operation, Origin, Paging, PathParam, Query, Route,
    Routes, StrictJson, json,
};
use serde::Serialize;
use utoipa::PartialSchema;

use crate::app::{App, missing};
use crate::error::Error;
use crate::{microversion as since, openapi};
use body::NewGroup;
use view::{Brief, View};

/// Returns the routes of node groups.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List a cluster's node groups", list)
            .since(since::NODE_GROUPS)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "role"])
            .returns(JsonShape::object([("nodegroups", JsonShape::list(view::brief()))])),
        Route::post("Create a node group", create)
            .since(since::NODE_GROUPS)
            .reads(NewGroup::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(view::shape()),
    ];
    let one = [
        Route::get("Show a node group", show).since(since::NODE_GROUPS).returns(view::shape()),
        Route::patch("Change a node group", patch)
            .since(since::NODE_GROUPS)
            .reads(openapi::patch_body())
            .answers(StatusCode::ACCEPTED)
            .returns(view::shape()),
        Route::delete("Delete a node group", delete)
            .since(since::NODE_GROUPS)
            .answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("nodegroups")
        .at("/v1/clusters/{cluster}/nodegroups", all)
        .at("/v1/clusters/{cluster}/nodegroups/{nodegroup}", one)
}

/// `POST /v1/clusters/{cluster}/nodegroups`: creates a node group.
async fn create(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<NewGroup>,
) -> Result<Response, Error> {
    let id = (app.ids)();
    // A caller who may not see the cluster gets 404 before the image is looked up.
    let cluster = app.cluster(&caller, &ident).await?;
    let body = &body.borrowed(&app, &caller, &cluster).await?;
    let cluster = app
        .change(&caller, &ident, |cluster, groups| {
            check_not_deleting(&cluster)?;
            let group = body.group(&cluster, id, (app.clock)(), asked)?;
            if groups.iter().any(|other| other.name == group.name) {
                let why = format!(
                    "A node group with name {} already exists in the cluster {}.",
                    group.name, cluster.name
                );
                return Err(ApiError::conflict(why).into());
            }
            check_another_group(&groups)?;
            let all: Vec<_> = groups.into_iter().chain([group.clone()]).collect();
            app.conductor.check_member_configs(&cluster, &all)?;
            let said =
                format!("node group {} with {} members requested", group.name, group.node_count());
            let events = vec![app.request_event(&cluster, "NodeGroupAsked", said)];
            let cluster = Cluster { asked_at: (app.clock)(), ..cluster };
            Ok(ClusterChange { added: vec![group], events, ..ClusterChange::of(cluster) })
        })
        .await?;
    let group = app.group(&cluster, &id.to_string()).await?;
    let view =
        View { group: &group, cluster: &cluster, origin: &origin, asked, now: (app.clock)() };
    Ok(json(StatusCode::ACCEPTED, &view))
}

/// `GET /v1/clusters/{cluster}/nodegroups?role=`: all node groups of a cluster on one page, because a cluster has few.
async fn list(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        nodegroups: Vec<Brief<'a>>,
    }
    Paging::take(&mut query)?;
    let role = query.take("role");
    query.finish()?;
    let cluster = app.cluster(&caller, &ident).await?;
    let groups = app.store.groups_of(cluster.id).await?;
    let wanted = groups
        .iter()
        .filter(|group| role.as_deref().is_none_or(|role| role == group.role.as_str()));
    let views = wanted.map(|group| Brief {
        view: View { group, cluster: &cluster, origin: &origin, asked, now: (app.clock)() },
    });
    Ok(json(StatusCode::OK, &Body { nodegroups: views.collect() }))
}

/// `GET /v1/clusters/{cluster}/nodegroups/{nodegroup}`: one node group.
async fn show(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam((ident, group)): PathParam<(String, String)>,
) -> Result<Response, Error> {
    let cluster = app.cluster(&caller, &ident).await?;
    let group = app.group(&cluster, &group).await?;
    let view =
        View { group: &group, cluster: &cluster, origin: &origin, asked, now: (app.clock)() };
    Ok(json(StatusCode::OK, &view))
}

/// `PATCH /v1/clusters/{cluster}/nodegroups/{nodegroup}`: changes the bounds of its size, as in Magnum.
async fn patch(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam((ident, name)): PathParam<(String, String)>,
    StrictJson(patch): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let cluster = app
        .change(&caller, &ident, |cluster, groups| {
            check_not_deleting(&cluster)?;
            let before = find(&groups, &name)?;
            let after = body::patched(before, patch.clone())?;
            check_group(&after)?;
            let after = NodeGroup { updated_at: Some((app.clock)()), ..after };
            Ok(ClusterChange { changed: vec![after], ..ClusterChange::of(cluster) })
        })
        .await?;
    let group = app.group(&cluster, &name).await?;
    let view =
        View { group: &group, cluster: &cluster, origin: &origin, asked, now: (app.clock)() };
    Ok(json(StatusCode::ACCEPTED, &view))
}

/// `DELETE /v1/clusters/{cluster}/nodegroups/{nodegroup}`: removes the group's members from the desired objects. The conductor drains and
/// deletes each member.
async fn delete(
    caller: Caller,
    State(app): State<App>,
    PathParam((ident, name)): PathParam<(String, String)>,
) -> Result<StatusCode, Error> {
    app.change(&caller, &ident, |cluster, groups| {
        check_not_deleting(&cluster)?;
        let group = find(&groups, &name)?;
        if group.is_default {
            return Err(Refusal::DefaultGroup { name: group.name.to_string() }.into());
        }
        let said = format!("deletion of node group {} requested", group.name);
        let events = vec![app.request_event(&cluster, "NodeGroupDeleteAsked", said)];
        let first_machine = cluster.first_machine.max(group.next_machine);
        let cluster = Cluster { asked_at: (app.clock)(), first_machine, ..cluster };
        Ok(ClusterChange { removed: vec![group.clone()], events, ..ClusterChange::of(cluster) })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn find<'g>(groups: &'g [NodeGroup], ident: &str) -> Result<&'g NodeGroup, ApiError> {
    let is_it = |group: &&NodeGroup| group.name.as_str() == ident || group.id.to_string() == ident;
    groups.iter().find(is_it).ok_or_else(|| missing("Nodegroup", ident))
}
