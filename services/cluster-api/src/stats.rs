//! `/v1/stats`: the number of clusters and members.

use axum::extract::State;
use axum::response::Response;
use cluster_store::Scope;
use http::StatusCode;
use openstack_api::{Caller, JsonShape, Query, Route, Routes, json};
use serde::Serialize;

use crate::app::{App, may_see_project, other_project_refusal};
use crate::error::Error;
use crate::microversion as since;

/// Returns the route of statistics.
pub(crate) fn routes() -> Routes<App> {
    let count = Route::get("Count clusters and their members", count);
    let counted =
        JsonShape::object([("clusters", JsonShape::integer()), ("nodes", JsonShape::integer())]);
    Routes::new("stats").at(
        "/v1/stats",
        [count.since(since::STATS).query_parameters(["project_id", "type"]).returns(counted)],
    )
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
        && !may_see_project(&caller, project)
    {
        return Err(other_project_refusal("project_id").into());
    }
    let scope = project.map_or_else(|| app.scope(&caller), Scope::Project);
    let (clusters, nodes) = app.store.count_clusters(&scope).await?;
    Ok(json(StatusCode::OK, &Body { clusters, nodes }))
}
