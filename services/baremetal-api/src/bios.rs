//! `/v1/nodes/{node}/bios`: the settings of a machine's firmware, as the last steps have left them.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{BiosSetting, NodeUuid};
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, Links, Microversion, Origin, PathParam, Query, Route, Routes,
    Time, flag, json, json_field,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json as value};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion as since, rule};

/// A field of a setting: its name, and how the field is read.
type Field = (&'static str, fn(&BiosSetting) -> Value);

/// The fields that clients select. Settings have links and times besides.
#[rustfmt::skip]
const FIELDS: [Field; 11] = [
    ("name",             |it| value!(it.name)),
    ("value",            |it| value!(it.value)),
    ("attribute_type",   |it| value!(it.attribute.attribute_type)),
    ("allowable_values", |it| value!(it.attribute.allowable_values)),
    ("lower_bound",      |it| value!(it.attribute.lower_bound)),
    ("upper_bound",      |it| value!(it.attribute.upper_bound)),
    ("min_length",       |it| value!(it.attribute.min_length)),
    ("max_length",       |it| value!(it.attribute.max_length)),
    ("read_only",        |it| value!(it.attribute.read_only)),
    ("reset_required",   |it| value!(it.attribute.reset_required)),
    ("unique",           |it| value!(it.attribute.unique)),
];
/// The fields that are shown unless the client selects others.
const BRIEF: &[Field] = FIELDS.split_at(2).0;
/// The fields that every answer has.
const ALWAYS: [&str; 3] = ["created_at", "updated_at", "links"];

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List the BIOS settings of a node", list)
        .with_rule(rule::READ)
        .query_parameters(["detail", "fields"])
        .returns(JsonShape::object([("bios", JsonShape::list(shape()))]));
    let show = Route::get("Show a BIOS setting of a node", show)
        .with_rule(rule::READ)
        .returns(JsonShape::map(shape()));
    let since = |route: Route<App>| route.hidden_before(since::BIOS, Hidden::Path);
    Routes::new("bios")
        .at("/v1/nodes/{node}/bios", [since(list)])
        .at("/v1/nodes/{node}/bios/{setting}", [since(show)])
}

fn shape() -> JsonShape {
    let text = || JsonShape::text().or_null();
    let number = || JsonShape::integer().or_null();
    let boolean = || JsonShape::boolean().or_null();
    let shape = JsonShape::object([
        ("created_at", JsonShape::text()),
        ("updated_at", text()),
        ("links", JsonShape::links()),
    ]);
    shape.maybe([
        ("name", JsonShape::text()),
        ("value", text()),
        ("attribute_type", text()),
        ("allowable_values", JsonShape::list(JsonShape::text())),
        ("lower_bound", number()),
        ("upper_bound", number()),
        ("min_length", number()),
        ("max_length", number()),
        ("read_only", boolean()),
        ("reset_required", boolean()),
        ("unique", boolean()),
    ])
}

/// A setting in the form that clients see.
struct View<'a> {
    node: NodeUuid,
    setting: &'a BiosSetting,
    fields: &'a [Field],
    origin: &'a Origin,
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let View { node, setting, fields, origin } = self;
        let part = format!("/bios/{}", setting.name);
        let links = Links { origin, collection: "nodes", id: node, part: &part };
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("created_at", &Time(setting.created_at))?;
        object.serialize_entry("updated_at", &Time::some(setting.updated_at))?;
        object.serialize_entry("links", &links)?;
        for (name, read) in *fields {
            object.serialize_entry(name, &read(setting))?;
        }
        object.end()
    }
}

/// The fields that the query selects.
fn selected(query: &mut Query, asked: Microversion) -> Result<Vec<Field>, ApiError> {
    if !asked.has(since::BIOS_REGISTRY) {
        // Before this version, both parameters were unknown.
        return Ok(BRIEF.to_vec());
    }
    let detail = query.take("detail").map(|raw| flag("detail", &raw)).transpose()?;
    match (query.take("fields"), detail) {
        (Some(_), Some(_)) => {
            Err(ApiError::bad_field("fields", "cannot be used together with detail"))
        }
        (Some(raw), None) => named(&raw),
        (None, Some(true)) => Ok(FIELDS.to_vec()),
        (None, Some(false) | None) => Ok(BRIEF.to_vec()),
    }
}

fn named(raw: &str) -> Result<Vec<Field>, ApiError> {
    let wanted: Vec<&str> = raw.split(',').map(str::trim).collect();
    let is_known =
        |name: &str| ALWAYS.contains(&name) || FIELDS.iter().any(|(known, _)| *known == name);
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        let unknown: String = unknown.chars().take(64).collect();
        return Err(ApiError::bad_field("fields", format!("a setting has no field {unknown:?}")));
    }
    Ok(FIELDS.into_iter().filter(|(name, _)| wanted.contains(name)).collect())
}

/// `GET /v1/nodes/{node}/bios`: lists the settings of a node.
async fn list(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let fields = selected(&mut query, request.asked)?;
    query.finish()?;
    let node = request.node(&ident).await?.id;
    let settings = request.app.store.list_bios_settings(node).await?;
    let view = |setting| View { node, setting, fields: &fields, origin: &origin };
    let views: Vec<_> = settings.iter().map(view).collect();
    Ok(json_field(StatusCode::OK, "bios", &views))
}

/// `GET /v1/nodes/{node}/bios/{setting}`: shows a setting of a node.
async fn show(
    request: Request,
    origin: Origin,
    PathParam((ident, name)): PathParam<(String, String)>,
    query: Query,
) -> Result<Response> {
    query.finish()?;
    let node = request.node(&ident).await?.id;
    let setting = request.app.store.find_bios_setting(node, &name).await?;
    let setting = setting.ok_or_else(|| {
        let name: String = name.chars().take(64).collect();
        ApiError::not_found(format!("node {node} has no BIOS setting {name:?}"))
    })?;
    let fields = if request.asked.has(since::BIOS_REGISTRY) { &FIELDS[..] } else { BRIEF };
    let view = View { node, setting: &setting, fields, origin: &origin };
    Ok(json(StatusCode::OK, &BTreeMap::from([(&setting.name, view)])))
}
