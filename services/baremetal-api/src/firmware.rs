//! `/v1/nodes/{node}/firmware`: the components of a machine with firmware of their own. The interface `redfish` lists BIOS, BMC and network
//! adapters; no other interface lists components, not even `fake`, as in Ironic.

use axum::response::Response;
use baremetal_core::FirmwareComponent;
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, Microversion, PathParam, Query, Route, Routes, Time, json_field,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json as value};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion as since, rule};

/// A field of a component: its name, the microversion that introduced it, and how the field is read.
type Field = (&'static str, Microversion, fn(&FirmwareComponent) -> Value);

/// The fields that clients select. Components have times besides. No BMC is asked for the identity of a component.
#[rustfmt::skip]
const FIELDS: [Field; 7] = [
    ("component",            since::FIRMWARE,          |it| value!(it.component)),
    ("initial_version",      since::FIRMWARE,          |it| value!(it.initial_version)),
    ("current_version",      since::FIRMWARE,          |it| value!(it.current_version)),
    ("last_version_flashed", since::FIRMWARE,          |it| value!(it.last_version_flashed)),
    ("vendor",               since::FIRMWARE_IDENTITY, |_| Value::Null),
    ("model",                since::FIRMWARE_IDENTITY, |_| Value::Null),
    ("serial_number",        since::FIRMWARE_IDENTITY, |_| Value::Null),
];
/// The fields that every answer has.
const ALWAYS: [&str; 2] = ["created_at", "updated_at"];

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List the firmware components of a node", list)
        .hidden_before(since::FIRMWARE, Hidden::Path)
        .with_rule(rule::READ)
        .query_parameters(["fields"])
        .returns(JsonShape::object([("firmware", JsonShape::list(shape()))]));
    Routes::new("firmware").at("/v1/nodes/{node}/firmware", [list])
}

fn shape() -> JsonShape {
    let text = || JsonShape::text().or_null();
    let shape = JsonShape::object([("created_at", JsonShape::text()), ("updated_at", text())]);
    shape.maybe([
        ("component", JsonShape::text()),
        ("initial_version", JsonShape::text()),
        ("current_version", JsonShape::text()),
        ("last_version_flashed", text()),
        ("vendor", text()),
        ("model", text()),
        ("serial_number", text()),
    ])
}

/// A component in the form that clients see.
struct View<'a> {
    component: &'a FirmwareComponent,
    fields: &'a [Field],
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let View { component, fields } = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("created_at", &Time(component.created_at))?;
        object.serialize_entry("updated_at", &Time::some(component.updated_at))?;
        for (name, _, read) in *fields {
            object.serialize_entry(name, &read(component))?;
        }
        object.end()
    }
}

/// The fields that the query selects.
fn selected(raw: Option<&str>, asked: Microversion) -> Result<Vec<Field>, ApiError> {
    let known = FIELDS.into_iter().filter(|(_, came, _)| asked.has(*came));
    let Some(raw) = raw else { return Ok(known.collect()) };
    let known: Vec<Field> = known.collect();
    let is_known =
        |name: &str| ALWAYS.contains(&name) || known.iter().any(|(known, ..)| *known == name);
    let wanted: Vec<&str> = raw.split(',').map(str::trim).collect();
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        let unknown: String = unknown.chars().take(64).collect();
        let problem = format!("in this version, a component has no field {unknown:?}");
        return Err(ApiError::bad_field("fields", problem));
    }
    Ok(known.into_iter().filter(|(name, ..)| wanted.contains(name)).collect())
}

/// `GET /v1/nodes/{node}/firmware`: lists the components of a node.
async fn list(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let fields = query.take("fields");
    query.finish()?;
    let fields = selected(fields.as_deref(), request.asked)?;
    let node = request.node(&ident).await?;
    let view = |component| View { component, fields: &fields };
    let views: Vec<_> = node.firmware.iter().map(view).collect();
    Ok(json_field(StatusCode::OK, "firmware", &views))
}
