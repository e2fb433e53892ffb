//! `/bedplate/v1/nodes/{node}/…`: facts and functions that only the BMC of the machine has.

use axum::extract::State;
use axum::response::Response;
use bmc::{IdentifyLight, LogEntry, Reading};
use http::StatusCode;
use openstack_api::{ApiError, Caller, Handle, Query, Routes, Segment, Shape, Strict, json};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::{microversion, rule};

/// The routes of this file.
pub(crate) fn routes() -> Routes<App> {
    let identify = Handle::put("Switch a machine's identify light", identify).ruled(rule::RUN);
    let read = Handle::get("Read a machine's sensors", sensors);
    let log = Handle::get("Read the newest entries of a machine's event log", event_log);
    let reading = Shape::object([
        ("name", Shape::text()),
        ("value", Shape::number().or_null()),
        ("unit", Shape::text()),
        ("health", Shape::word(["ok", "warning", "critical", "unknown"])),
    ]);
    let entry = Shape::object([
        ("id", Shape::text()),
        ("at", Shape::whole().or_null()),
        ("message", Shape::text()),
    ]);
    let read = read
        .ruled(rule::SEE_INSIDE)
        .tells(Shape::object([("sensors", Shape::list(reading))]))
        .refuses([StatusCode::BAD_GATEWAY]);
    let log = log
        .ruled(rule::SEE_INSIDE)
        .asks(["limit"])
        .tells(Shape::object([("event_log", Shape::list(entry))]))
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
async fn sensors(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body {
        sensors: Vec<Reading>,
    }
    let node = app.node(&caller, microversion::MAXIMUM, &ident).await?;
    let sensors = app.conductor.sensors(&node).await?;
    Ok(json(StatusCode::OK, &Body { sensors }))
}

/// `GET /bedplate/v1/nodes/{node}/event-log?limit=`: reads the newest entries of the event log.
async fn event_log(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
    mut query: Query,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body {
        event_log: Vec<LogEntry>,
    }
    let limit = match query.take("limit").map(|raw| raw.parse::<usize>()) {
        None => 100,
        Some(Ok(limit @ 1..=1000)) => limit,
        Some(_) => return Err(ApiError::bad_field("limit", "must be from 1 to 1000").into()),
    };
    query.finish()?;
    let node = app.node(&caller, microversion::MAXIMUM, &ident).await?;
    let event_log = app.conductor.event_log(&node, limit).await?;
    Ok(json(StatusCode::OK, &Body { event_log }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Light {
    /// Whether the light is on.
    on: bool,
}

/// `PUT /bedplate/v1/nodes/{node}/identify`: switches the identify light.
async fn identify(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
    Strict(light): Strict<Light>,
) -> Result<StatusCode, Error> {
    let node = app.node(&caller, microversion::MAXIMUM, &ident).await?;
    let wanted = if light.on { IdentifyLight::On } else { IdentifyLight::Off };
    app.conductor.identify(&node, wanted).await?;
    Ok(StatusCode::NO_CONTENT)
}
