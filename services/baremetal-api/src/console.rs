//! `/v1/nodes/{node}/states/console`: whether the serial console of a node is enabled, and its URL.

use axum::response::Response;
use baremetal_core::{NodeUuid, switch_console};
use http::StatusCode;
use openstack_api::{JsonShape, Origin, PathParam, Route, Routes, accepted_at, json};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::parameters::{Given, Parameters, boolean};
use crate::request::Request;
use crate::rule;

/// The routes of consoles.
pub(crate) fn routes() -> Routes<App> {
    let info = JsonShape::object([
        ("type", JsonShape::enumeration(["websocket"])),
        ("url", JsonShape::text()),
    ]);
    let shown = JsonShape::object([
        ("console_enabled", JsonShape::boolean()),
        ("console_info", info.or_null()),
    ]);
    let show = Route::get("Show whether a node's console is enabled, and its URL", show);
    let switch = Route::put("Enable or disable a node's console", switch)
        .reads_if_sent(Body::schema())
        .query_parameters(Body::IN_QUERY.iter().copied())
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    Routes::new("states").at(
        "/v1/nodes/{node}/states/console",
        [show.with_rule(rule::OPERATE).returns(shown), switch.with_rule(rule::OPERATE)],
    )
}

/// `GET /v1/nodes/{node}/states/console`: shows whether the console is enabled, and its URL.
async fn show(
    request: Request,
    PathParam(ident): PathParam<String>,
    origin: Origin,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Info {
        r#type: &'static str,
        url: String,
    }
    #[derive(Serialize)]
    struct Shown {
        console_enabled: bool,
        console_info: Option<Info>,
    }
    let node = request.node(&ident).await?;
    let info = || Info { r#type: "websocket", url: address(&origin, node.id) };
    let console_info = node.console_enabled.then(info);
    Ok(json(StatusCode::OK, &Shown { console_enabled: node.console_enabled, console_info }))
}

/// The WebSocket URL of the console (RFC 6455 §3), at the origin that the client used.
fn address(origin: &Origin, node: NodeUuid) -> String {
    let origin = origin.as_str();
    let rest = origin.strip_prefix("http").unwrap_or(origin);
    format!("ws{rest}/bedplate/v1/nodes/{node}/console")
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// Whether the console can be opened.
    #[serde(deserialize_with = "boolean")]
    enabled: bool,
}

impl Parameters for Body {
    const IN_QUERY: &'static [&'static str] = &["enabled"];
}

/// `PUT /v1/nodes/{node}/states/console`: enables or disables the console before the answer is sent, in any provision state.
async fn switch(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    Given(body): Given<Body>,
) -> Result<Response, Error> {
    let node =
        request.change(&ident, |node| Ok((switch_console(node, body.enabled)?, None))).await?;
    if !body.enabled {
        request.app.conductor.end_console(node.id);
    }
    let url = format!("{origin}/v1/nodes/{ident}/states/console");
    Ok(accepted_at(StatusCode::ACCEPTED, &url))
}
