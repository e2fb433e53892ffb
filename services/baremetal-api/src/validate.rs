//! `/v1/nodes/{node}/validate`: checks whether a node has the settings that its interfaces need.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{
    InspectInterface, Interface, Node, Port, RescueInterface, ServiceNetwork, check_boot,
    check_rescue,
};
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, PathParam, Query, Route, Routes, json};
use serde::Serialize;
use uuid::Uuid;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::rule;

pub(crate) fn routes() -> Routes<App> {
    let validate = Route::get("Validate a node's interfaces", validate).with_rule(rule::INSTALL);
    let verdict = || {
        JsonShape::object([("result", JsonShape::boolean())]).maybe([("reason", JsonShape::text())])
    };
    let validate = validate.returns(JsonShape::map(verdict()));
    let named = Route::get("Validate the interfaces of the node that the query names", named)
        .with_rule(rule::INSTALL)
        .query_parameters(["node", "node_uuid"])
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::map(verdict()));
    Routes::new("nodes")
        .at("/v1/nodes/validate", [named])
        .at("/v1/nodes/{node}/validate", [validate])
}

#[derive(Serialize)]
struct Verdict {
    result: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<E: ToString> From<Result<(), E>> for Verdict {
    fn from(checked: Result<(), E>) -> Self {
        Verdict { result: checked.is_ok(), reason: checked.err().map(|why| why.to_string()) }
    }
}

/// `GET /v1/nodes/validate?node=`: the same as `GET /v1/nodes/{node}/validate`.
async fn named(request: Request, mut query: Query) -> Result<Response> {
    let (node, id) = (query.take("node"), query.take("node_uuid"));
    query.finish()?;
    if id.as_ref().is_some_and(|id| Uuid::parse_str(id).is_err()) {
        return Err(ApiError::bad_field("node_uuid", "must be a UUID").into());
    }
    match node.or(id) {
        Some(ident) => validate(request, PathParam(ident)).await,
        None => Err(ApiError::bad_field("node", "is required").into()),
    }
}

/// `GET /v1/nodes/{node}/validate`: validates each interface of a node.
async fn validate(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node_of_query("node", &ident).await?;
    let ports = request.app.store.ports_of(node.id).await?;
    // Ironic does not list the vendor interface.
    let interfaces = Interface::ALL.into_iter().filter(|interface| *interface != Interface::Vendor);
    let mut verdicts: BTreeMap<&str, Verdict> = interfaces
        .map(|interface| (interface.as_str(), verdict(&request.app, &node, &ports, interface)))
        .collect();
    for (interface, networks) in [
        (Interface::Network, &[ServiceNetwork::Provisioning, ServiceNetwork::Cleaning][..]),
        (Interface::Rescue, &[ServiceNetwork::Rescuing][..]),
    ] {
        let checked = request.app.conductor.check_networks(&node, &ports, networks).await;
        if let (Err(why), Some(verdict)) = (checked, verdicts.get_mut(interface.as_str()))
            && verdict.result
        {
            *verdict = Err::<(), _>(why).into();
        }
    }
    Ok(json(StatusCode::OK, &verdicts))
}

/// Checks the settings that one interface needs.
fn verdict(app: &App, node: &Node, ports: &[Port], interface: Interface) -> Verdict {
    if !node.has(interface) {
        return unsupported(node, interface);
    }
    let bmc = || app.conductor.check_driver_info(node);
    match interface {
        Interface::Power | Interface::Management => bmc().into(),
        Interface::Console => app.conductor.check_console(node).into(),
        Interface::Boot => check_boot(node, ports).into(),
        Interface::Deploy => app.conductor.check_deploy(node).into(),
        Interface::Inspect => match (bmc(), node.inspect_interface()) {
            (Ok(()), InspectInterface::Agent) => check_boot(node, ports).into(),
            (checked, _) => checked.into(),
        },
        Interface::Rescue => match (bmc(), node.rescue_interface()) {
            (Err(why), RescueInterface::Agent) => Err::<(), _>(why).into(),
            (_, RescueInterface::Agent | RescueInterface::Fake | RescueInterface::NoRescue) => {
                check_rescue(node, ports).into()
            }
        },
        // The networks are checked in Neutron. The other implementations, `noop` and `fake`, need no settings. Nova does not deploy to a node whose storage interface is invalid.
        Interface::Bios
        | Interface::Firmware
        | Interface::Network
        | Interface::Raid
        | Interface::Storage
        | Interface::Vendor => Verdict { result: true, reason: None },
    }
}

/// The refusal in Ironic's words.
fn unsupported(node: &Node, interface: Interface) -> Verdict {
    let (driver, interface) = (node.driver, interface.as_str());
    let reason =
        format!("Driver {driver} does not support {interface} (disabled or not implemented).");
    Verdict { result: false, reason: Some(reason) }
}
