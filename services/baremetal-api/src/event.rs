//! `/v1/events`: reports of the network service about its ports.
//!
//! As in Ironic, an event is checked and logged, and nothing waits for one. Neutron counts any other answer as a failure.

use http::StatusCode;
use openstack_api::{ApiError, Hidden, Route, Routes, StrictJson};
use serde::Deserialize;
use tracing::debug;
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::value::mac_address;
use crate::{microversion as since, rule};

/// The largest number of events in one request.
const MOST: usize = 1000;

pub(crate) fn routes() -> Routes<App> {
    let post = Route::post("Report events of the network service", post)
        .with_rule(rule::ADMINISTER)
        .reads(Body::schema())
        .answers(StatusCode::NO_CONTENT)
        .hidden_before(since::EVENTS, Hidden::Resource);
    Routes::new("events").at("/v1/events", [post])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// At least one event.
    #[schema(inline, min_items = 1, max_items = 1000)]
    events: Vec<NetworkEvent>,
}

/// A change of a port in the network service.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NetworkEvent {
    #[schema(inline)]
    event: NetworkEventType,
    port_id: Uuid,
    #[schema(example = "52:54:00:00:00:01")]
    mac_address: String,
    status: String,
    device_id: Option<Uuid>,
    #[serde(rename = "binding:host_id")]
    host_id: Option<Uuid>,
    #[serde(rename = "binding:vnic_type")]
    vnic_type: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
enum NetworkEventType {
    #[serde(rename = "network.bind_port")]
    Bind,
    #[serde(rename = "network.unbind_port")]
    Unbind,
    #[serde(rename = "network.delete_port")]
    Delete,
}

/// `POST /v1/events`: checks all events, then logs them.
async fn post(_: Request, StrictJson(body): StrictJson<Body>) -> Result<StatusCode> {
    let count = body.events.len();
    if count == 0 || count > MOST {
        return Err(ApiError::bad_field("events", format!("must be 1 to {MOST} events")).into());
    }
    for event in &body.events {
        mac_address("mac_address", event.mac_address.as_str().into())?;
    }
    for NetworkEvent { event, port_id, mac_address, status, device_id, host_id, vnic_type } in
        &body.events
    {
        debug!(
            event.name = ?event, port.id = %port_id, port.address = mac_address, port.status = status,
            ?device_id, ?host_id, ?vnic_type, "the network service reports an event"
        );
    }
    Ok(StatusCode::NO_CONTENT)
}
