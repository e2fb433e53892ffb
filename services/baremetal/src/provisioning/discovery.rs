//! The version document, and inventories of machines that nobody has enrolled.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use baremetal_api::agents::{ErrorAnswer, JsonBody};
use hardware::MacAddress;
use serde_json::{Map, Value, json};

use super::state::Provisioning;

/// The highest API version offered to agents. ironic-python-agent limits itself to 1.68.
const VERSION: &str = "1.72";

/// `GET /`: the version document, which agents request first.
pub(super) async fn versions() -> Json<Value> {
    let version = json!({"id": "v1", "status": "CURRENT", "min_version": "1.1", "version": VERSION, "links": []});
    Json(
        json!({"name": "Bedplate provisioning", "default_version": version, "versions": [version]}),
    )
}

/// `POST /discover/{mac}/{capability}/inventory`: the inventory of a machine that nobody has enrolled.
pub(super) async fn discovered(
    State(provisioning): State<Provisioning>,
    Path((mac, capability)): Path<(MacAddress, String)>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), ErrorAnswer> {
    provisioning.conductor.discovered(mac, &capability, body).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": null}))))
}
