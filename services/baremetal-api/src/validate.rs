//! `/v1/nodes/{node}/validate`: whether a node says all that work on it will need.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use baremetal_core::{Interface, check_boot};
use http::StatusCode;
use openstack_api::{Caller, Handle, Microversion, Routes, Segment, Shape, json};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;
use crate::rule;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let validate = Handle::get("Tell what a node lacks", validate).ruled(rule::INSTALL);
    let verdict = Shape::object([("result", Shape::flag())]).maybe([("reason", Shape::text())]);
    let validate = validate.tells(Shape::map(verdict));
    Routes::new("nodes").at("/v1/nodes/{node}/validate", [validate])
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

/// `GET /v1/nodes/{node}/validate`.
async fn validate(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    let node = app.node(&caller, asked, &ident).await?;
    let ports = app.store.ports_of(node.id).await?;
    let verdict = |interface| match interface {
        Interface::Power | Interface::Management => app.conductor.check_driver_info(&node).into(),
        Interface::Boot => check_boot(&node, &ports).into(),
        Interface::Deploy => app.conductor.check_deploy(&node).into(),
        Interface::Bios
        | Interface::Console
        | Interface::Firmware
        | Interface::Inspect
        | Interface::Network
        | Interface::Raid
        | Interface::Rescue
        | Interface::Storage
        | Interface::Vendor => Verdict { result: true, reason: None },
    };
    // Ironic leaves the vendor's interface out.
    let interfaces = Interface::ALL.into_iter().filter(|interface| *interface != Interface::Vendor);
    let verdicts: BTreeMap<&str, Verdict> =
        interfaces.map(|interface| (interface.as_str(), verdict(interface))).collect();
    Ok(json(StatusCode::OK, &verdicts))
}
