//! `/v1/nodes/{node}/maintenance`: begins and ends the maintenance of a node.

use axum::extract::State;
use baremetal_core::{Maintenance, Node};
use http::StatusCode;
use openstack_api::{Caller, Microversion, PathParam, Query, Route, Routes, StrictJson};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::app::{App, forced};
use crate::error::Error;
use crate::rule;

/// The routes of maintenance.
pub(crate) fn routes() -> Routes<App> {
    let begin = Route::put("Put a node into maintenance", begin)
        .reads_if_sent(Body::schema())
        .query_parameters(["force"])
        .refuses([StatusCode::CONFLICT]);
    let end = Route::delete("Take a node out of maintenance", end);
    Routes::new("nodes").at(
        "/v1/nodes/{node}/maintenance",
        [begin, end].map(|handle| {
            handle.with_rule(rule::INSTALL).answers(StatusCode::ACCEPTED).tells_nothing()
        }),
    )
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    reason: Option<String>,
}

/// `PUT /v1/nodes/{node}/maintenance`: begins maintenance. The body is optional. A compute host is drained, unless a cluster would lose its
/// quorum; then the request is refused.
async fn begin(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    body: Option<StrictJson<Body>>,
) -> Result<StatusCode, Error> {
    let forced = forced(&mut query);
    query.finish()?;
    let node = app.node(&caller, asked, &ident).await?;
    if node.maintenance.is_none() {
        app.check_maintenance(&caller, &node, &forced).await?;
    }
    let reason = body.and_then(|StrictJson(body)| body.reason);
    set(&app, &caller, asked, &ident, Some(Maintenance { reason }), &forced).await
}

/// `DELETE /v1/nodes/{node}/maintenance`: ends maintenance. A compute host is undrained.
async fn end(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode, Error> {
    set(&app, &caller, asked, &ident, None, &[]).await
}

async fn set(
    app: &App,
    caller: &Caller,
    asked: Microversion,
    ident: &str,
    maintenance: Option<Maintenance>,
    forced: &[String],
) -> Result<StatusCode, Error> {
    let node = app
        .change(caller, asked, ident, |node| {
            let after = Node { maintenance: maintenance.clone(), ..node.clone() };
            Ok((app.with_maintenance_effects(caller, node, after, forced), None))
        })
        .await?;
    app.conductor.wake(node.id);
    Ok(StatusCode::ACCEPTED)
}
