//! `/v1/nodes/{node}/firmware`: the components of a machine whose firmware can be updated.
//!
//! No driver lists components, not even the interface `fake`, as in Ironic.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, Microversion, PathParam, Query, Route, Routes, json_field,
};

use crate::app::App;
use crate::error::Error;
use crate::request::Request;
use crate::{microversion as since, rule};

/// The fields of a component, and the microversions that introduced them.
#[rustfmt::skip]
const FIELDS: [(&str, Microversion); 9] = [
    ("component",            since::FIRMWARE),
    ("initial_version",      since::FIRMWARE),
    ("current_version",      since::FIRMWARE),
    ("last_version_flashed", since::FIRMWARE),
    ("created_at",           since::FIRMWARE),
    ("updated_at",           since::FIRMWARE),
    ("vendor",               since::FIRMWARE_IDENTITY),
    ("model",                since::FIRMWARE_IDENTITY),
    ("serial_number",        since::FIRMWARE_IDENTITY),
];

/// The routes of firmware.
pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List the firmware components of a node (always empty)", list)
        .hidden_before(since::FIRMWARE, Hidden::Path)
        .with_rule(rule::READ)
        .query_parameters(["fields"])
        .returns(JsonShape::object([("firmware", JsonShape::list(JsonShape::anything()))]));
    Routes::new("firmware").at("/v1/nodes/{node}/firmware", [list])
}

/// `GET /v1/nodes/{node}/firmware`: always an empty list.
async fn list(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    let fields = query.take("fields");
    query.finish()?;
    let is_known =
        |name: &str| FIELDS.iter().any(|(known, came)| *known == name && request.asked.has(*came));
    let mut names = fields.iter().flat_map(|raw| raw.split(',').map(str::trim));
    if let Some(unknown) = names.find(|name| !is_known(name)) {
        let unknown: String = unknown.chars().take(64).collect();
        let problem = format!("in this version, a component has no field {unknown:?}");
        return Err(ApiError::bad_field("fields", problem).into());
    }
    request.node(&ident).await?;
    Ok(json_field(StatusCode::OK, "firmware", &[(); 0]))
}
