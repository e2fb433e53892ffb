//! `/v1/nodes/{node}/vifs`: virtual interfaces, with the network interface `noop`, which attaches none.
//!
//! Nova asks for them on every deployment and expects 204. As with Ironic's own `noop` nothing is kept: networks are
//! the operator's, and a list that names what is not attached would be a lie.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use openstack_api::{ApiError, Caller, Handle, Microversion, Routes, Segment, Shape, Strict, json};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::{microversion, rule};

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Handle::get("List a node's VIFs, of which there are none", list)
            .ruled(rule::SEE)
            .tells(Shape::object([("vifs", Shape::list(Shape::anything()))])),
        Handle::post("Accept a VIF, and attach nothing", attach)
            .ruled(rule::INSTALL)
            .reads(Shape::open())
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = Handle::delete("Detach a VIF, of which there are none", detach).ruled(rule::INSTALL);
    Routes::new("vifs")
        .at("/v1/nodes/{node}/vifs", all.map(|handle| handle.since(microversion::VIFS)))
        .at(
            "/v1/nodes/{node}/vifs/{vif}",
            [one.answers(StatusCode::NO_CONTENT).since(microversion::VIFS)],
        )
}

/// `GET /v1/nodes/{node}/vifs`.
async fn list(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Shown {
        vifs: [(); 0],
    }
    app.node(&caller, asked, &ident).await?;
    Ok(json(StatusCode::OK, &Shown { vifs: [] }))
}

/// `POST /v1/nodes/{node}/vifs`. Clients send fields of their own beside `id`.
async fn attach(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
    Strict(body): Strict<Map<String, Value>>,
) -> Result<StatusCode, Error> {
    if !body.get("id").is_some_and(Value::is_string) {
        return Err(ApiError::bad_field("id", "it is required, and text").into());
    }
    app.node(&caller, asked, &ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/nodes/{node}/vifs/{vif}`.
async fn detach(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment((ident, _)): Segment<(String, String)>,
) -> Result<StatusCode, Error> {
    app.node(&caller, asked, &ident).await?;
    Ok(StatusCode::NO_CONTENT)
}
