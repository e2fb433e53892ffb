//! `/v1/nodes/{node}/maintenance`: an operator works on the node.

use axum::extract::State;
use baremetal_core::{Maintenance, Node};
use http::StatusCode;
use openstack_api::{Caller, Handle, Microversion, Routes, Segment, Strict};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::rule;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let begin = Handle::put("Put a node into maintenance", begin).reads_if_sent(Body::schema());
    let end = Handle::delete("Take a node out of maintenance", end);
    Routes::new("nodes").at(
        "/v1/nodes/{node}/maintenance",
        [begin, end].map(|handle| {
            handle.ruled(rule::INSTALL).answers(StatusCode::ACCEPTED).tells_nothing()
        }),
    )
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    reason: Option<String>,
}

/// `PUT /v1/nodes/{node}/maintenance`. The body may be missing.
async fn begin(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
    body: Option<Strict<Body>>,
) -> Result<StatusCode, Error> {
    let reason = body.and_then(|Strict(body)| body.reason);
    set(&app, &caller, asked, &ident, Some(Maintenance { reason })).await
}

/// `DELETE /v1/nodes/{node}/maintenance`.
async fn end(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
) -> Result<StatusCode, Error> {
    set(&app, &caller, asked, &ident, None).await
}

async fn set(
    app: &App,
    caller: &Caller,
    asked: Microversion,
    ident: &str,
    maintenance: Option<Maintenance>,
) -> Result<StatusCode, Error> {
    let node = app
        .change(caller, asked, ident, |node| {
            Ok((Node { maintenance: maintenance.clone(), ..node.clone() }, None))
        })
        .await?;
    app.conductor.wake(node.id);
    Ok(StatusCode::ACCEPTED)
}
