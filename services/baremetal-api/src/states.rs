//! `/v1/nodes/{node}/states`: the present and the target states of a node.

use axum::response::Response;
use baremetal_core::State as ProvisionState;
use http::StatusCode;
use openstack_api::{JsonShape, PathParam, Query, Relation, Route, Routes, Time, json};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Result;
use crate::node::{last_error, state_word};
use crate::request::{Request, relation};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Show a node's states", show).with_rule(rule::READ).returns(shape());
    Routes::new("states")
        .at("/v1/nodes/{node}/states", [show])
        // Other modules have the states that change. As in Ironic, every method of any other state is refused with 405.
        .at("/v1/nodes/{node}/states/{state}", [])
}

/// The JSON shape of the states of a node.
fn shape() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let shape = JsonShape::object([
        ("console_enabled", JsonShape::boolean()),
        ("power_state", maybe()),
        ("provision_state", maybe()),
        ("provision_updated_at", maybe()),
        ("target_power_state", maybe()),
        ("target_provision_state", maybe()),
    ]);
    shape.maybe([
        ("last_error", maybe()),
        ("raid_config", JsonShape::any_object()),
        ("target_raid_config", JsonShape::any_object()),
        ("boot_mode", maybe()),
        ("secure_boot", JsonShape::boolean().or_null()),
    ])
}

/// `GET /v1/nodes/{node}/states`: shows the states of a node.
async fn show(
    request: Request,
    PathParam(ident): PathParam<String>,
    query: Query,
) -> Result<Response> {
    #[derive(Serialize)]
    struct Body<'a> {
        console_enabled: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_error: Option<Option<String>>,
        power_state: Option<hardware::PowerState>,
        provision_state: Option<&'a str>,
        provision_updated_at: Option<Time>,
        target_power_state: Option<hardware::PowerState>,
        target_provision_state: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        raid_config: Option<&'a Map<String, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target_raid_config: Option<&'a Map<String, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        boot_mode: Option<Option<hardware::BootMode>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        secure_boot: Option<Option<bool>>,
    }
    query.finish()?;
    let node = request.node(&ident).await?;
    let lent = relation(&request.caller, &node) == Some(Relation::Lessee);
    let body = Body {
        console_enabled: node.console_enabled,
        last_error: (!lent).then(|| last_error(&node)),
        power_state: node.power_state,
        provision_state: state_word(&node, request.asked),
        provision_updated_at: Time::some(node.provision_updated_at),
        target_power_state: node.target_power_state(),
        target_provision_state: node.leads_to().map(ProvisionState::as_str),
        raid_config: request.asked.since(microversion::RAID, &node.raid_config),
        target_raid_config: request.asked.since(microversion::RAID, &node.target_raid_config),
        boot_mode: request.asked.since(microversion::BOOT_MODE, node.boot_mode),
        secure_boot: request.asked.since(microversion::BOOT_MODE, node.secure_boot),
    };
    Ok(json(StatusCode::OK, &body))
}
