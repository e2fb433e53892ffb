//! `/v1/nodes/{node}/inventory`: the hardware found by the last inspection.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{ApiError, Hidden, JsonShape, PathParam, Route, Routes, json};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let show =
        Route::get("Show what the last inspection found", show).with_rule(rule::READ_DETAILS);
    let found = [("inventory", JsonShape::anything()), ("plugin_data", JsonShape::anything())];
    let show = show.returns(JsonShape::object(found));
    Routes::new("nodes").at(
        "/v1/nodes/{node}/inventory",
        [show.hidden_before(microversion::INVENTORY, Hidden::Path)],
    )
}

/// `GET /v1/nodes/{node}/inventory`: shows the inventory of a node.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    #[derive(Serialize)]
    struct Shown<'a> {
        inventory: &'a Value,
        plugin_data: &'a Value,
    }
    let node = request.node(&ident).await?;
    let found = request.app.store.find_inspected(node.id).await?.ok_or_else(|| {
        ApiError::not_found(format!("node {} has not been inspected yet", node.label()))
    })?;
    let shown = Shown { inventory: &found.inventory, plugin_data: &found.plugin_data };
    Ok(json(StatusCode::OK, &shown))
}
