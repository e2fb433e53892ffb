//! `/bedplate/v1/nodes/{node}/…`: facts and functions that only the BMC of the machine has.

use axum::response::Response;
use bmc::IdentifyLight;
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, PathParam, Query, Route, Routes, StrictJson, json_field};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let identify =
        Route::put("Switch a machine's identify light", identify).with_rule(rule::OPERATE);
    let read = Route::get("Read a machine's sensors", sensors);
    let log = Route::get("Read the newest entries of a machine's event log", event_log);
    let reading = JsonShape::object([
        ("name", JsonShape::text()),
        ("value", JsonShape::number().or_null()),
        ("unit", JsonShape::text()),
        ("health", JsonShape::enumeration(["ok", "warning", "critical", "unknown"])),
    ]);
    let entry = JsonShape::object([
        ("id", JsonShape::text()),
        ("at", JsonShape::integer().or_null()),
        ("message", JsonShape::text()),
    ]);
    let read = read
        .with_rule(rule::READ_DETAILS)
        .returns(JsonShape::object([("sensors", JsonShape::list(reading))]))
        .refuses([StatusCode::BAD_GATEWAY]);
    let log = log
        .with_rule(rule::READ_DETAILS)
        .query_parameters(["limit"])
        .returns(JsonShape::object([("event_log", JsonShape::list(entry))]))
        .refuses([StatusCode::BAD_GATEWAY]);
    let identify = identify.refuses([StatusCode::BAD_GATEWAY]);
    Routes::new("bedplate")
        .at("/bedplate/v1/nodes/{node}/sensors", [read])
        .at("/bedplate/v1/nodes/{node}/event-log", [log])
        .at(
            "/bedplate/v1/nodes/{node}/identify",
            [identify.reads(Light::schema()).answers(StatusCode::NO_CONTENT)],
        )
}

/// `GET /bedplate/v1/nodes/{node}/sensors`: reads the sensors.
async fn sensors(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let sensors = request.app.conductor.sensors(&node).await?;
    Ok(json_field(StatusCode::OK, "sensors", &sensors))
}

/// `GET /bedplate/v1/nodes/{node}/event-log?limit=`: reads the newest entries of the event log.
async fn event_log(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let limit = match query.take("limit").map(|raw| raw.parse::<usize>()) {
        None => 100,
        Some(Ok(limit @ 1..=1000)) => limit,
        Some(_) => return Err(ApiError::bad_field("limit", "must be from 1 to 1000").into()),
    };
    query.finish()?;
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let event_log = request.app.conductor.event_log(&node, limit).await?;
    Ok(json_field(StatusCode::OK, "event_log", &event_log))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Light {
    /// Whether the light is on.
    on: bool,
}

/// `PUT /bedplate/v1/nodes/{node}/identify`: switches the identify light.
async fn identify(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(light): StrictJson<Light>,
) -> Result<StatusCode> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let wanted = if light.on { IdentifyLight::On } else { IdentifyLight::Off };
    request.app.conductor.identify(&node, wanted).await?;
    Ok(StatusCode::NO_CONTENT)
}
