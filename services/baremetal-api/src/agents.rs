//! The requests of agents: lookups, heartbeats and inventories, in ironic-python-agent's protocol.
//!
//! The provisioning listener serves them, and the API's listener does if the configuration says so. They need no authentication: a heartbeat
//! or an inventory is accepted only with the secret of its boot, and a lookup tells no secret. Nodes with the boot interface `fake` are the
//! exception: the service boots nothing, so the first lookup tells the token, and an inventory needs no secret, as in Ironic.

mod error;
mod report;

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, FromRef, Path, Query, State};
use baremetal_conductor::{Conductor, Heartbeat};
use baremetal_core::NodeUuid;
use hardware::MacAddress;
use http::StatusCode;
use openstack_api::{Hidden, JsonShape, Route, Routes};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::microversion as since;

pub use error::ErrorAnswer;
pub use report::JsonBody;

/// The maximum size of an agent's report in bytes: an inventory with its logs.
pub const MAX_REPORT: usize = 8 << 20;

impl FromRef<App> for Conductor {
    fn from_ref(app: &App) -> Conductor {
        app.conductor.clone()
    }
}

pub(crate) fn routes() -> Routes<App> {
    let any = JsonShape::any_object;
    let lookup = Route::public_get("Find the node that an agent runs on", lookup)
        .query_parameters(["addresses", "node_uuid"])
        .refuses([StatusCode::SERVICE_UNAVAILABLE])
        .returns(any());
    let heartbeat = Route::public_post("Report that an agent is running", heartbeat)
        .reads(any())
        .max_body(MAX_REPORT)
        .refuses([StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE])
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    let heartbeat_by_body = Route::public_post("Report that an agent runs", heartbeat_by_body)
        .reads(any())
        .max_body(MAX_REPORT)
        .refuses([StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE])
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    let inspection = Route::public_post("Report the inventory of a machine", continue_inspection)
        .query_parameters(["node_uuid", "capability"])
        .reads(any())
        .max_body(MAX_REPORT)
        .refuses([StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE])
        .answers(StatusCode::ACCEPTED)
        .returns(any());
    Routes::new("agents")
        .at("/v1/lookup", [lookup.hidden_before(since::AGENTS, Hidden::Resource)])
        .at("/v1/heartbeat", [heartbeat_by_body.hidden_before(since::AGENTS, Hidden::Resource)])
        .at("/v1/heartbeat/{node}", [heartbeat.hidden_before(since::AGENTS, Hidden::Resource)])
        .at(
            "/v1/continue_inspection",
            [inspection.hidden_before(since::CONTINUE_INSPECTION, Hidden::ResourceAfterFirst)],
        )
}

/// The query of a lookup.
#[derive(Deserialize)]
pub struct LookupQuery {
    #[serde(default)]
    addresses: String,
    node_uuid: Option<NodeUuid>,
}

/// `GET /v1/lookup`: the node that the agent runs on.
///
/// # Errors
///
/// The query names no node, or the node waits for no agent.
pub async fn lookup(
    State(conductor): State<Conductor>,
    query: Result<Query<LookupQuery>, QueryRejection>,
) -> Result<Json<agent_protocol::LookupAnswer>, ErrorAnswer> {
    let Query(query) = query.map_err(bad_query)?;
    // Other addresses than MAC addresses (InfiniBand's) are of no use here.
    let addresses: Vec<MacAddress> =
        query.addresses.split(',').filter_map(|raw| raw.trim().parse().ok()).take(128).collect();
    if addresses.is_empty() && query.node_uuid.is_none() {
        return Err(ErrorAnswer::bad_request(
            "addresses: at least one MAC address or node_uuid is required".to_owned(),
        ));
    }
    Ok(Json(conductor.lookup(&addresses, query.node_uuid).await?))
}

/// `POST /v1/heartbeat/{node}`: a report that the agent is running.
///
/// # Errors
///
/// The node or the token is wrong, or a field of the report.
pub async fn heartbeat(
    State(conductor): State<Conductor>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    node: Result<Path<NodeUuid>, PathRejection>,
    JsonBody(beat): JsonBody<Heartbeat>,
) -> Result<StatusCode, ErrorAnswer> {
    let Path(node) = node.map_err(|_| ErrorAnswer::not_found("the node"))?;
    conductor.heartbeat(node, &beat, peer.ip()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// A heartbeat whose body names the node.
#[derive(Deserialize)]
struct NamedHeartbeat {
    node_ident: NodeUuid,
    #[serde(flatten)]
    beat: Heartbeat,
}

/// `POST /v1/heartbeat`: a report that the agent is running, as ironic-tempest-plugin sends it.
async fn heartbeat_by_body(
    State(conductor): State<Conductor>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    JsonBody(named): JsonBody<NamedHeartbeat>,
) -> Result<StatusCode, ErrorAnswer> {
    conductor.heartbeat(named.node_ident, &named.beat, peer.ip()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// The query of an inventory.
#[derive(Deserialize)]
pub struct InspectionQuery {
    node_uuid: Option<NodeUuid>,
    capability: Option<String>,
}

/// `POST /v1/continue_inspection`: the agent's inventory.
///
/// # Errors
///
/// The node waits for no inventory, the capability is wrong, or the inventory.
pub async fn continue_inspection(
    State(conductor): State<Conductor>,
    query: Result<Query<InspectionQuery>, QueryRejection>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), ErrorAnswer> {
    let Query(query) = query.map_err(bad_query)?;
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

fn bad_query(why: QueryRejection) -> ErrorAnswer {
    ErrorAnswer::bad_request(why.body_text())
}
