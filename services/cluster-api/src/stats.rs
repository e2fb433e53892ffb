//! `/v1/stats`: the number of clusters and members.

use axum::response::Response;
use cluster_store::Scope;
use http::StatusCode;
use openstack_api::{JsonShape, Query, Route, Routes, json};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, may_see_project, other_project_refusal};

pub(crate) fn routes() -> Routes<App> {
    let count = Route::get("Count clusters and their members", count);
    let counted =
        JsonShape::object([("clusters", JsonShape::integer()), ("nodes", JsonShape::integer())]);
    Routes::new("stats")
        .at("/v1/stats", [count.query_parameters(["project_id", "type"]).returns(counted)])
}

/// `GET /v1/stats?project_id=`: counts clusters and members.
async fn count(request: Request, mut query: Query) -> Result<Response> {
    #[derive(Serialize)]
    struct Body {
        clusters: u64,
        nodes: u64,
    }
    let project = query.take("project_id").filter(|project| !project.is_empty());
    query.take("type");
    query.finish()?;
    if let Some(project) = &project
        && !may_see_project(&request.caller, project)
    {
        return Err(other_project_refusal("project_id").into());
    }
    let scope = project.map_or_else(|| request.scope(), Scope::Project);
    let (clusters, nodes) = request.app.store.count_clusters(&scope).await?;
    Ok(json(StatusCode::OK, &Body { clusters, nodes }))
}
