//! Lookups, heartbeats and inventories of agents, in ironic-python-agent's protocol.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::StatusCode;
use baremetal_conductor::Heartbeat;
use baremetal_core::NodeUuid;
use hardware::MacAddress;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::ErrorAnswer;
use super::report::JsonBody;
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

#[derive(Deserialize)]
pub(super) struct LookupQuery {
    #[serde(default)]
    addresses: String,
    node_uuid: Option<NodeUuid>,
}

/// `GET /v1/lookup`: the node that the agent runs on.
pub(super) async fn lookup(
    State(provisioning): State<Provisioning>,
    Query(query): Query<LookupQuery>,
) -> Result<Json<agent_protocol::LookupAnswer>, ErrorAnswer> {
    // Other addresses than MAC addresses (InfiniBand's) are of no use here.
    let addresses: Vec<MacAddress> =
        query.addresses.split(',').filter_map(|raw| raw.trim().parse().ok()).take(128).collect();
    if addresses.is_empty() && query.node_uuid.is_none() {
        return Err(ErrorAnswer::bad_request(
            "addresses: at least one MAC address or node_uuid is required".to_owned(),
        ));
    }
    Ok(Json(provisioning.conductor.lookup(&addresses, query.node_uuid).await?))
}

/// `POST /v1/heartbeat/{node}`: a report that the agent is running.
pub(super) async fn heartbeat(
    State(provisioning): State<Provisioning>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path(node): Path<NodeUuid>,
    JsonBody(beat): JsonBody<Heartbeat>,
) -> Result<StatusCode, ErrorAnswer> {
    provisioning.conductor.heartbeat(node, &beat, peer.ip()).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
pub(super) struct InspectionQuery {
    node_uuid: Option<NodeUuid>,
    capability: Option<String>,
}

/// `POST /v1/continue_inspection`: the agent's inventory.
pub(super) async fn continue_inspection(
    State(provisioning): State<Provisioning>,
    Query(query): Query<InspectionQuery>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), ErrorAnswer> {
    let conductor = &provisioning.conductor;
    let node = match (query.node_uuid, query.capability) {
        (Some(node), Some(capability)) => {
            conductor.inspected(node, &capability, body).await?;
            node
        }
        (None, Some(_)) => {
            let problem = "node_uuid: goes with the capability".to_owned();
            return Err(ErrorAnswer::bad_request(problem));
        }
        (node, None) => conductor.inspected_unsigned(node, body).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": node}))))
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
