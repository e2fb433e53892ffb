//! The parameters and the result of every import.

use axum::response::Response;
use baremetal_store::ImportEffect;
use http::StatusCode;
use openstack_api::{ApiError, Query, flag, json_field};
use serde_json::{Map, Value};
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportResult {
    Imported,
    /// The record is here already, and was not changed.
    Present,
    /// The record would be imported.
    Checked,
}

impl ImportResult {
    /// The result of a written or checked import.
    pub(super) fn of(effect: ImportEffect) -> Self {
        match effect {
            ImportEffect::Write => ImportResult::Imported,
            ImportEffect::Check => ImportResult::Checked,
        }
    }

    pub(super) fn response(self) -> Response {
        let word = match self {
            ImportResult::Imported => "imported",
            ImportResult::Present => "present",
            ImportResult::Checked => "checked",
        };
        json_field(StatusCode::OK, "result", &word)
    }
}

/// Whether the request imports or only checks.
pub(super) fn effect(mut query: Query) -> Result<ImportEffect, ApiError> {
    let is_dry = query.take("dry_run").map(|raw| flag("dry_run", &raw)).transpose()?;
    query.finish()?;
    Ok(if is_dry == Some(true) { ImportEffect::Check } else { ImportEffect::Write })
}

/// The id in the path, which the body must have too.
pub(super) fn id_of(ident: &str, body: &Map<String, Value>) -> Result<Uuid, ApiError> {
    let id: Uuid =
        ident.parse().map_err(|_| ApiError::bad_request("the path must end in a UUID"))?;
    match body.get("uuid").and_then(Value::as_str).map(Uuid::parse_str) {
        Some(Ok(own)) if own == id => Ok(id),
        Some(_) | None => Err(ApiError::bad_field("uuid", "must be the UUID of the path")),
    }
}
