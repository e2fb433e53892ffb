//! `/v1/nodes/{node}/management/indicators`: the lamps of a machine.

use axum::response::Response;
use baremetal_core::{NodeUuid, find_indicator, indicators, setting_refused};
use http::StatusCode;
use openstack_api::{JsonShape, Links, Origin, PathParam, Route, Routes, StrictJson, json_field};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::rule;

pub(crate) fn routes() -> Routes<App> {
    let shape = JsonShape::object([
        ("name", JsonShape::text()),
        ("component", JsonShape::text()),
        ("readonly", JsonShape::boolean()),
        ("states", JsonShape::list(JsonShape::text())),
        ("links", JsonShape::links()),
    ]);
    let list = Route::get("List the indicators of a node", list)
        .with_rule(rule::READ)
        .returns(JsonShape::object([("indicators", JsonShape::list(shape))]));
    let show = Route::get("Show the state of an indicator", show)
        .with_rule(rule::READ)
        .returns(JsonShape::object([("state", JsonShape::text())]));
    let set = Route::put("Refuse to set an indicator", set)
        .with_rule(rule::OPERATE)
        .reads(Body::schema())
        .answers(StatusCode::NO_CONTENT);
    Routes::new("management")
        .at("/v1/nodes/{node}/management/indicators", [list])
        .at("/v1/nodes/{node}/management/indicators/{indicator}", [show, set])
}

/// An indicator in the form that clients see.
#[derive(Serialize)]
struct View<'a> {
    component: &'static str,
    links: Links<'a, NodeUuid>,
    name: String,
    readonly: bool,
    states: &'static [&'static str],
}

/// `GET /v1/nodes/{node}/management/indicators`: lists the indicators of a node.
async fn list(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let node = request.node(&ident).await?;
    let indicators = indicators(&node)?;
    let parts = indicators.iter().map(|it| format!("/management/indicators/{}", it.name()));
    let parts: Vec<String> = parts.collect();
    let views = indicators.iter().zip(&parts).map(|(indicator, part)| View {
        component: indicator.component,
        links: Links { origin: &origin, collection: "nodes", id: node.id, part },
        name: indicator.name(),
        readonly: indicator.is_read_only,
        states: indicator.states,
    });
    let views: Vec<View<'_>> = views.collect();
    Ok(json_field(StatusCode::OK, "indicators", &views))
}

/// `GET /v1/nodes/{node}/management/indicators/{indicator}`: shows the state of an indicator.
async fn show(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
) -> Result<Response> {
    let node = request.node(&ident).await?;
    Ok(json_field(StatusCode::OK, "state", &find_indicator(&node, &name)?.state))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[expect(dead_code, reason = "no indicator can be set")]
    state: String,
}

/// `PUT /v1/nodes/{node}/management/indicators/{indicator}`: always refused, because no driver sets indicators.
async fn set(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
    StrictJson(_): StrictJson<Body>,
) -> Result<StatusCode> {
    let node = request.node(&ident).await?;
    Err(setting_refused(&node, &name).into())
}
