//! `/v1/clusters/{cluster}/actions`: resize and upgrade.

use axum::response::Response;
use cluster_core::{LedgerEntry, MemberName, NodeGroup, check_not_deleting};
use http::StatusCode;
use openstack_api::{ApiError, Hidden, PathParam, Route, Routes, StrictJson};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::accepted::{accepted, accepted_schema};
use crate::app::App;
use crate::change::{default_workers, resized};
use crate::error::Result;
use crate::lenient::{count, text};
use crate::microversion as since;
use crate::request::{Request, missing};
use crate::upgrade::WantedUpgrade;

pub(crate) fn routes() -> Routes<App> {
    let resize = Route::post("Resize a node group", ask_resize).reads(Resize::schema());
    let upgrade = Route::post("Upgrade a cluster", ask_upgrade).reads(Upgrade::schema());
    Routes::new("actions")
        .at(
            "/v1/clusters/{cluster}/actions/resize",
            [resize
                .hidden_before(since::RESIZE, Hidden::Version)
                .answers(StatusCode::ACCEPTED)
                .returns(accepted_schema())],
        )
        .at(
            "/v1/clusters/{cluster}/actions/upgrade",
            [upgrade
                .hidden_before(since::UPGRADE, Hidden::Version)
                .answers(StatusCode::ACCEPTED)
                .returns(accepted_schema())],
        )
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Resize {
    /// The new number of members.
    #[serde(deserialize_with = "count")]
    node_count: Option<u32>,
    /// The members to remove first: server ids, or member names such as `default-worker-3`.
    #[serde(default)]
    nodes_to_remove: Option<Vec<String>>,
    /// The node group's id or name; the default workers if missing.
    #[serde(default, deserialize_with = "text")]
    nodegroup: Option<String>,
}

/// `POST /v1/clusters/{cluster}/actions/resize`: changes the size of a node group.
async fn ask_resize(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Resize>,
) -> Result<Response> {
    let count = body.node_count.ok_or_else(|| ApiError::bad_field("node_count", "is required"))?;
    since::check_zero(count, request.asked)?;
    request.cluster(&ident).await?;
    let named = body.nodes_to_remove.unwrap_or_default();
    let machines = named_members(&request, &ident, &named).await?;
    let change = request.change(&ident, |cluster, groups| {
        check_not_deleting(&cluster)?;
        let group = chosen(&groups, body.nodegroup.as_deref())?;
        resized(&request.app, cluster, group, count, &machines)
    });
    Ok(accepted(&change.await?))
}

/// Finds the members of a cluster by name, or by the id or name of their servers.
async fn named_members(
    request: &Request,
    ident: &str,
    named: &[String],
) -> Result<Vec<MemberName>> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let ledger = request.app.store.ledger_of(request.cluster(ident).await?.id).await?;
    Ok(named.iter().map(|name| machine(name, &ledger)).collect::<Result<_, _>>()?)
}

fn chosen<'g>(groups: &'g [NodeGroup], ident: Option<&str>) -> Result<&'g NodeGroup, ApiError> {
    let Some(ident) = ident else { return default_workers(groups) };
    let is_it = |group: &&NodeGroup| group.name.as_str() == ident || group.id.to_string() == ident;
    groups.iter().find(is_it).ok_or_else(|| missing("Nodegroup", ident))
}

/// Finds the member with this name, or whose server has this id or name.
fn machine(name: &str, ledger: &[LedgerEntry]) -> Result<MemberName, ApiError> {
    let server =
        |entry: &&LedgerEntry| entry.cloud_id.as_deref() == Some(name) || entry.name == name;
    let server = ledger.iter().find(server).and_then(|entry| entry.kind.strip_prefix("server/"));
    server.unwrap_or(name).parse().map_err(|_| {
        let name: String = name.chars().take(64).collect();
        ApiError::bad_field("nodes_to_remove", format!("{name:?} is not a member of this cluster"))
    })
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Upgrade {
    /// The template to upgrade to: its id or name.
    cluster_template: String,
    /// The maximum number of workers of a group that are replaced at once; 1 if missing.
    #[serde(default, deserialize_with = "count")]
    max_batch_size: Option<u32>,
    /// The node group's id or name; all node groups if missing.
    #[serde(default, deserialize_with = "text")]
    nodegroup: Option<String>,
}

/// `POST /v1/clusters/{cluster}/actions/upgrade`: replaces members by members of another template.
async fn ask_upgrade(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Upgrade>,
) -> Result<Response> {
    let wanted = WantedUpgrade {
        template: body.cluster_template,
        nodegroup: body.nodegroup,
        at_once: body.max_batch_size.unwrap_or(1),
        max_unavailable: 0,
    };
    Ok(accepted(&wanted.record(&request, &ident).await?))
}
