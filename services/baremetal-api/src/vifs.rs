//! `/v1/nodes/{node}/vifs`: virtual interfaces, for the network interface `noop`, which attaches none.
//!
//! Nova requests VIFs in every deployment and expects 204. As with Ironic's own `noop`, nothing is stored: the operator manages the
//! networks, and a list of VIFs that are not attached would be wrong.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, PathParam, Route, Routes, StrictJson, json_field,
};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::request::Request;
use crate::{microversion, rule};

/// The routes of VIFs.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List a node's VIFs (always empty)", list)
            .with_rule(rule::READ)
            .returns(JsonShape::object([("vifs", JsonShape::list(JsonShape::anything()))])),
        Route::post("Accept a VIF without attaching it", attach)
            .with_rule(rule::INSTALL)
            .reads(JsonShape::any_object())
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = Route::delete("Accept the removal of a VIF", detach).with_rule(rule::INSTALL);
    Routes::new("vifs")
        .at(
            "/v1/nodes/{node}/vifs",
            all.map(|handle| handle.hidden_before(microversion::VIFS, Hidden::Path)),
        )
        .at(
            "/v1/nodes/{node}/vifs/{vif}",
            [one.answers(StatusCode::NO_CONTENT).hidden_before(microversion::VIFS, Hidden::Path)],
        )
}

/// `GET /v1/nodes/{node}/vifs`: always an empty list.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response, Error> {
    request.node(&ident).await?;
    Ok(json_field(StatusCode::OK, "vifs", &[(); 0]))
}

/// `POST /v1/nodes/{node}/vifs`: accepts a VIF and does nothing. Fields besides `id` are accepted, because clients send their own.
async fn attach(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<StatusCode, Error> {
    if !body.get("id").is_some_and(Value::is_string) {
        return Err(ApiError::bad_field("id", "is required and must be text").into());
    }
    request.node(&ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/nodes/{node}/vifs/{vif}`: accepts the removal of a VIF and does nothing.
async fn detach(
    request: Request,
    PathParam((ident, _)): PathParam<(String, String)>,
) -> Result<StatusCode, Error> {
    request.node(&ident).await?;
    Ok(StatusCode::NO_CONTENT)
}
