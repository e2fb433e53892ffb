//! `/v1/nodes/{node}/maintenance`: begins and ends the maintenance of a node.

use baremetal_core::{Maintenance, Node};
use http::StatusCode;
use openstack_api::{PathParam, Query, Route, Routes, StrictJson};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::parameters::given_twice;
use crate::request::{Request, forced};
use crate::rule;

pub(crate) fn routes() -> Routes<App> {
    let begin = Route::put("Put a node into maintenance", begin)
        .reads_if_sent(Body::schema())
        .query_parameters(["force", "reason"])
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
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    body: Option<StrictJson<Body>>,
) -> Result<StatusCode, Error> {
    let forced = forced(&mut query);
    let in_query = query.take("reason");
    query.finish()?;
    let reason = match (body.and_then(|StrictJson(body)| body.reason), in_query) {
        (Some(_), Some(_)) => return Err(given_twice("reason").into()),
        (in_body, in_query) => in_body.or(in_query),
    };
    let node = request.node(&ident).await?;
    if !node.is_maintenance_requested() {
        request.check_quorum(&node, &forced).await?;
    }
    set(&request, &ident, Some(Maintenance::requested(reason)), &forced).await
}

/// The body of a request to end maintenance, which has no fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// `DELETE /v1/nodes/{node}/maintenance`: ends maintenance. A compute host is undrained. As in Ironic, a field in a body is refused, because
/// nothing would come of it.
async fn end(
    request: Request,
    PathParam(ident): PathParam<String>,
    _: Option<StrictJson<NoFields>>,
) -> Result<StatusCode, Error> {
    set(&request, &ident, None, &[]).await
}

async fn set(
    request: &Request,
    ident: &str,
    maintenance: Option<Maintenance>,
    forced: &[String],
) -> Result<StatusCode, Error> {
    let node = request
        .change(ident, |node| {
            let after = Node { maintenance: maintenance.clone(), ..node.clone() };
            Ok((request.with_maintenance_effects(node, after, forced), None))
        })
        .await?;
    request.app.conductor.wake(node.id);
    Ok(StatusCode::ACCEPTED)
}
