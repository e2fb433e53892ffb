//! `/bedplate/v1/nodes/{node}/rotate-bmc-password`: requests a new password of the BMC account.

use axum::response::Response;
use baremetal_core::request_password_rotation;
use http::StatusCode;
use openstack_api::{Origin, PathParam, Route, Routes, accepted_at};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let rotate = Route::post("Change the password of a BMC account to a random one", rotate)
        .with_rule(rule::ADMINISTER)
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/rotate-bmc-password", [rotate])
}

/// `POST /bedplate/v1/nodes/{node}/rotate-bmc-password`: records the request, which the conductor carries out. No answer has the password.
async fn rotate(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    if let Some(shared) = request.app.conductor.shared_bmc(&node).await? {
        return Err(shared.into());
    }
    let node = request
        .change_at(microversion::MAXIMUM, &ident, |node| {
            let (node, entry) = request_password_rotation(node, (request.app.clock)())?;
            Ok((node, Some(entry)))
        })
        .await?;
    request.app.conductor.wake(node.id);
    Ok(accepted_at(StatusCode::ACCEPTED, &format!("{origin}/bedplate/v1/nodes/{ident}/explain")))
}
