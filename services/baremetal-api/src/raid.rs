//! The RAID configuration that a node should get, and the properties of its logical disks.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{Driver, Interface, LOGICAL_DISK_PROPERTIES, with_target_raid_config};
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, Hidden, JsonShape, PathParam, Route, Routes, StrictJson, json,
};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{driver, microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let set = Route::put("Set the RAID configuration that a node should get", set)
        .with_rule(rule::OPERATE)
        .reads(body())
        .answers(StatusCode::NO_CONTENT)
        .refuses([StatusCode::CONFLICT]);
    let properties = Route::get("List the properties of logical disks", properties)
        .returns(JsonShape::map(JsonShape::text()));
    let since = |route: Route<App>| route.hidden_before(microversion::RAID, Hidden::Version);
    Routes::new("raid")
        .at("/v1/nodes/{node}/states/raid", [since(set)])
        .at("/v1/drivers/{driver}/raid/logical_disk_properties", [since(properties)])
}

/// The JSON shape of a RAID configuration.
fn body() -> JsonShape {
    JsonShape::object([]).maybe([("logical_disks", JsonShape::list(JsonShape::any_object()))])
}

/// `PUT /v1/nodes/{node}/states/raid`: sets the target RAID configuration, which a RAID step makes.
async fn set(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(wanted): StrictJson<Map<String, Value>>,
) -> Result<StatusCode> {
    request
        .change(&ident, |node| Ok((with_target_raid_config(node, wanted.clone())?, None)))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/drivers/{driver}/raid/logical_disk_properties`: describes the properties of logical disks, if nodes of the driver have RAID
/// unless they choose otherwise.
async fn properties(_caller: Caller, PathParam(name): PathParam<String>) -> Result<Response> {
    let driver = driver::find(&name)?;
    let interface = driver.default(Interface::Raid);
    if interface.starts_with("no-") {
        return Err(unsupported(driver, interface).into());
    }
    let described = LOGICAL_DISK_PROPERTIES
        .iter()
        .map(|property| (property.name, property.describe()))
        .collect::<BTreeMap<_, _>>();
    Ok(json(StatusCode::OK, &described))
}

fn unsupported(driver: Driver, interface: &str) -> ApiError {
    ApiError::not_found(format!(
        "driver {driver} has the raid interface {interface}, which combines no disks"
    ))
}
