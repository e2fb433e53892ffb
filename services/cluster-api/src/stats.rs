//! `/v1/stats`: the number of clusters and members.

use axum::extract::State;
use axum::response::Response;
use cluster_store::Scope;
use http::StatusCode;
use openstack_api::{Caller, Handle, Query, Routes, Shape, json};
use serde::Serialize;

use crate::app::{App, elsewhere, reaches};
use crate::error::Error;
use crate::microversion as since;

/// Returns the route of statistics.
pub(crate) fn routes() -> Routes<App> {
    let count = Handle::get("Count clusters and their members", count);
    let counted = Shape::object([("clusters", Shape::whole()), ("nodes", Shape::whole())]);
    Routes::new("stats")
        .at("/v1/stats", [count.since(since::STATS).asks(["project_id", "type"]).tells(counted)])
}

/// `GET /v1/stats?project_id=`: counts clusters and members.
async fn count(
    caller: Caller,
    State(app): State<App>,
    mut query: Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body {
        clusters: u64,
        nodes: u64,
    }
    let project = query.take("project_id").filter(|project| !project.is_empty());
    query.take("type");
    query.finish()?;
    if let Some(project) = &project
        && !reaches(&caller, project)
    {
        return Err(elsewhere("project_id").into());
    }
    let scope = project.map_or_else(|| app.scope(&caller), Scope::Project);
    let (clusters, nodes) = app.store.count_clusters(&scope).await?;
    Ok(json(StatusCode::OK, &Body { clusters, nodes }))
}
