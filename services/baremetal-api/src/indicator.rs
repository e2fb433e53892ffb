//! `/v1/nodes/{node}/management/indicators`: the lamps of a machine.

use axum::response::Response;
use baremetal_core::{
    IndicatorSource, Node, NodeUuid, find_indicator, indicator_source, settable_state,
};
use hardware::Indicator;
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
        .refuses([StatusCode::BAD_GATEWAY])
        .returns(JsonShape::object([("indicators", JsonShape::list(shape))]));
    let show = Route::get("Show the state of an indicator", show)
        .with_rule(rule::READ)
        .refuses([StatusCode::BAD_GATEWAY])
        .returns(JsonShape::object([("state", JsonShape::text())]));
    let set = Route::put("Set an indicator", set)
        .with_rule(rule::OPERATE)
        .refuses([StatusCode::BAD_GATEWAY])
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
    states: Vec<&'static str>,
}

/// Returns where the indicators of the node are, and reads them.
async fn read(request: &Request, node: &Node) -> Result<(IndicatorSource, Vec<Indicator>)> {
    let source = indicator_source(node)?;
    let indicators = match &source {
        IndicatorSource::Fixed(all) => all.clone(),
        IndicatorSource::Bmc => request.app.conductor.indicators(node).await?,
    };
    Ok((source, indicators))
}

/// `GET /v1/nodes/{node}/management/indicators`: lists the indicators of a node.
async fn list(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let node = request.node(&ident).await?;
    let (_, indicators) = read(&request, &node).await?;
    let parts = indicators.iter().map(|it| format!("/management/indicators/{}", it.name()));
    let parts: Vec<String> = parts.collect();
    let views = indicators.iter().zip(&parts).map(|(indicator, part)| View {
        component: indicator.component.as_str(),
        links: Links { origin: &origin, collection: "nodes", id: node.id, part },
        name: indicator.name(),
        readonly: indicator.is_read_only,
        states: indicator.states.iter().map(|state| state.as_str()).collect(),
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
    let (_, indicators) = read(&request, &node).await?;
    let found = find_indicator(&node, &indicators, &name)?;
    Ok(json_field(StatusCode::OK, "state", &found.state.as_str()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    state: String,
}

/// `PUT /v1/nodes/{node}/management/indicators/{indicator}`: sets an indicator.
async fn set(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
    StrictJson(body): StrictJson<Body>,
) -> Result<StatusCode> {
    let node = request.node(&ident).await?;
    let (source, indicators) = read(&request, &node).await?;
    let found = find_indicator(&node, &indicators, &name)?;
    let state = settable_state(&node, &source, found, &body.state)?;
    request.app.conductor.set_indicator(&node, found, state).await?;
    Ok(StatusCode::NO_CONTENT)
}
