//! `/v1/clusters/{cluster}/nodegroups`: creates, lists, shows, changes and deletes node groups.

mod field;

use axum::response::Response;
use cluster_core::{
    Cluster, GroupRequest, NodeGroup, NodeGroupUuid, changed_group, check_not_deleting,
    without_group,
};
use cluster_store::ClusterChange;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Hidden, JsonPatch, JsonShape, ListRequest, Paging, PathParam, Route, Routes,
    StrictJson,
};

use crate::app::App;
use crate::body::{self, Body, write_patch};
use crate::error::Result;
use crate::field::DetailLevel;
use crate::listing::MemoryList;
use crate::request::{Request, missing};
use crate::shown::Context;
use crate::view::{View, answer};
use crate::{microversion as since, openapi};
use field::GroupOfCluster;

/// Returns the routes of node groups.
pub(crate) fn routes() -> Routes<App> {
    let brief = || body::shape::<NodeGroup>(DetailLevel::Brief);
    let shape = || body::shape::<NodeGroup>(DetailLevel::Detail);
    let all = [
        Route::get("List a cluster's node groups", list)
            .hidden_before(since::NODE_GROUPS, Hidden::Version)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "role"])
            .returns(JsonShape::page("nodegroups", brief())),
        Route::post("Create a node group", create)
            .hidden_before(since::NODE_GROUPS, Hidden::Version)
            .reads(body::schema::<NodeGroup>())
            .answers(StatusCode::ACCEPTED)
            .returns(shape()),
    ];
    let one = [
        Route::get("Show a node group", show)
            .hidden_before(since::NODE_GROUPS, Hidden::Version)
            .returns(shape()),
        Route::patch("Change a node group", patch)
            .hidden_before(since::NODE_GROUPS, Hidden::Version)
            .reads(openapi::patch_body())
            .answers(StatusCode::ACCEPTED)
            .returns(shape()),
        Route::delete("Delete a node group", delete)
            .hidden_before(since::NODE_GROUPS, Hidden::Version)
            .answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("nodegroups")
        .at("/v1/clusters/{cluster}/nodegroups", all)
        .at("/v1/clusters/{cluster}/nodegroups/{nodegroup}", one)
}

/// `POST /v1/clusters/{cluster}/nodegroups`: creates a node group.
async fn create(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Body<NodeGroup>>,
) -> Result<Response> {
    let app = &request.app;
    let id = NodeGroupUuid::from_untyped_uuid((app.ids)());
    let (wanted, image) = requested(&request, body, &ident).await?;
    let change = request.change(&ident, |mut cluster, groups| {
        if let (Some(given), Some(id)) = (&image, &wanted.image) {
            cluster.blueprint.note_name(given, id);
        }
        let group = wanted.group(&cluster, &groups, id, (app.clock)())?;
        with_group(app, cluster, groups, group)
    });
    let cluster = change.await?;
    let group = request.group(&cluster, &id.to_string()).await?;
    let it = GroupOfCluster { group: &group, cluster: &cluster };
    Ok(answer::<NodeGroup>(StatusCode::ACCEPTED, it, &look))
}

/// Reads the request, and replaces the image by its id. Returns the image also as the caller gave it. A caller who may not see the cluster
/// gets 404 before anything is looked up.
async fn requested(
    request: &Request,
    body: Body<NodeGroup>,
    ident: &str,
) -> Result<(GroupRequest, Option<String>)> {
    let cluster = request.cluster(ident).await?;
    let mut wanted = GroupRequest::default();
    body.write(&mut wanted)?;
    if let Some(flavor) = &wanted.flavor {
        request.check_flavor(&cluster, flavor).await?;
    }
    let image = wanted.image.clone();
    if let Some(given) = wanted.image.take() {
        wanted.image = Some(request.resolve_image(&cluster, given).await?);
    }
    Ok((wanted, image))
}

/// Adds `group` to the cluster.
fn with_group(
    app: &App,
    cluster: Cluster,
    mut groups: Vec<NodeGroup>,
    group: NodeGroup,
) -> Result<ClusterChange> {
    if group.kubernetes.is_some() {
        app.check_upgraded()?;
    }
    groups.push(group.clone());
    app.conductor.check_member_configs(&cluster, &groups)?;
    let said = format!("node group {} with {} members requested", group.name, group.node_count());
    let requested = app.request_event(&cluster, "NodeGroupRequested", said);
    let own = group.labels != cluster.blueprint.labels;
    let warning = app.label_event(&cluster, &group.labels).filter(|_| own);
    let events = [requested].into_iter().chain(warning).collect();
    let cluster = Cluster { asked_at: (app.clock)(), ..cluster };
    Ok(ClusterChange { added: vec![group], events, ..ClusterChange::of(cluster) })
}

const LIST: MemoryList = MemoryList {
    name: "nodegroups",
    marker: "uuid",
    keys: &[
        "id",
        "uuid",
        "name",
        "role",
        "node_count",
        "flavor_id",
        "image_id",
        "is_default",
        "status",
    ],
};

/// `GET /v1/clusters/{cluster}/nodegroups?role=`: the node groups of a cluster.
async fn list(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
    asked: ListRequest,
) -> Result<Response> {
    let mut query = asked.query.clone();
    let paging = Paging::take(&mut query)?;
    let role = query.take("role");
    query.finish()?;
    let cluster = &request.cluster(&ident).await?;
    let groups = request.app.store.groups_of(cluster.id).await?;
    let is_wanted = |group: &&NodeGroup| role.as_deref().is_none_or(|it| it == group.role.as_str());
    let view = |group| View::<NodeGroup> {
        it: GroupOfCluster { group, cluster },
        level: DetailLevel::Brief,
        context: &look,
    };
    let nodegroups: Vec<_> = groups.iter().filter(is_wanted).map(view).collect();
    LIST.page(&nodegroups, (&paging, &asked))
}

/// `GET /v1/clusters/{cluster}/nodegroups/{nodegroup}`: one node group.
async fn show(
    request: Request,
    look: Context,
    PathParam((ident, group)): PathParam<(String, String)>,
) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let group = request.group(&cluster, &group).await?;
    let it = GroupOfCluster { group: &group, cluster: &cluster };
    Ok(answer::<NodeGroup>(StatusCode::OK, it, &look))
}

/// `PATCH /v1/clusters/{cluster}/nodegroups/{nodegroup}`: changes the bounds of its size, and the labels and taints of its nodes, as in
/// Magnum. The conductor labels and taints the nodes that exist.
async fn patch(
    request: Request,
    look: Context,
    PathParam((ident, name)): PathParam<(String, String)>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let app = &request.app;
    let change = request.change(&ident, |cluster, groups| {
        check_not_deleting(&cluster)?;
        let before = find(&groups, &name)?;
        let it = GroupOfCluster { group: before, cluster: &cluster };
        let mut after = before.clone();
        write_patch::<NodeGroup>(patch.clone(), it, &look, &mut after)?;
        let after = changed_group(before, after, (app.clock)())?;
        let is_marked =
            (&after.node_labels, &after.node_taints) != (&before.node_labels, &before.node_taints);
        if !is_marked {
            return Ok(ClusterChange { changed: vec![after], ..ClusterChange::of(cluster) });
        }
        let others = groups.iter().filter(|group| group.id != after.id);
        let all: Vec<NodeGroup> = others.chain([&after]).cloned().collect();
        app.conductor.check_member_configs(&cluster, &all)?;
        let said = format!("labels and taints of node group {} requested", after.name);
        let events = vec![app.request_event(&cluster, "NodeGroupChangeRequested", said)];
        Ok(ClusterChange { changed: vec![after], events, ..ClusterChange::of(cluster) })
    });
    let cluster = change.await?;
    let group = request.group(&cluster, &name).await?;
    let it = GroupOfCluster { group: &group, cluster: &cluster };
    Ok(answer::<NodeGroup>(StatusCode::ACCEPTED, it, &look))
}

/// `DELETE /v1/clusters/{cluster}/nodegroups/{nodegroup}`: removes the group's members from the desired objects. The conductor drains and
/// deletes each member.
async fn delete(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    request
        .change(&ident, |cluster, groups| {
            check_not_deleting(&cluster)?;
            let group = find(&groups, &name)?;
            let cluster = without_group(cluster, group, (request.app.clock)())?;
            let said = format!("deletion of node group {} requested", group.name);
            let events =
                vec![request.app.request_event(&cluster, "NodeGroupDeleteRequested", said)];
            Ok(ClusterChange { removed: vec![group.clone()], events, ..ClusterChange::of(cluster) })
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn find<'g>(groups: &'g [NodeGroup], ident: &str) -> Result<&'g NodeGroup, ApiError> {
    let is_it = |group: &&NodeGroup| group.name.as_str() == ident || group.id.to_string() == ident;
    groups.iter().find(is_it).ok_or_else(|| missing("Nodegroup", ident))
}
