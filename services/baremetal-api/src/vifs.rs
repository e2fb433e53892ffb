//! `/v1/nodes/{node}/vifs`: virtual interfaces of a node.
//!
//! The network interfaces `flat` and `neutron` attach each VIF to a port or a port group. `noop` accepts every VIF and forgets it, as Ironic's
//! does: the operator manages the networks. With a cloud, the conductor binds the port in Neutron of a machine in use, and releases the port
//! of a detached VIF, right after the answer.

use std::collections::BTreeSet;

use axum::response::Response;
use baremetal_conductor::VifLookupError;
use baremetal_core::{
    Node, Port, PortGroup, PortUuid, Stored, VifPlace, VifRefused, VifRequest, check_idle,
    choose_place, place_of_vif, vifs, with_attached_vif, with_detached_vif,
};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Hidden, JsonShape, PathParam, Route, Routes, StrictJson, json_field,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::value::{check_vif, uuid};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let vif = JsonShape::object([("id", JsonShape::text())]);
    let all = [
        Route::get("List a node's VIFs", list)
            .with_rule(rule::READ)
            .returns(JsonShape::object([("vifs", JsonShape::list(vif))])),
        Route::post("Attach a VIF to a port or port group", attach)
            .with_rule(rule::INSTALL)
            .reads(JsonShape::any_object())
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = Route::delete("Detach a VIF", detach).with_rule(rule::INSTALL);
    Routes::new("vifs")
        .at(
            "/v1/nodes/{node}/vifs",
            all.map(|handle| handle.hidden_before(microversion::VIFS, Hidden::Path)),
        )
        .at(
            "/v1/nodes/{node}/vifs/{vif}",
            [one.answers(StatusCode::NO_CONTENT).hidden_before(microversion::VIFS, Hidden::Path)],
        )
}

/// A VIF in the form that clients see.
#[derive(Serialize)]
struct Vif<'a> {
    id: &'a str,
}

type Places = (Vec<Port>, Vec<Stored<PortGroup>>);

/// `GET /v1/nodes/{node}/vifs`: lists the VIFs of a node.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node(&ident).await?;
    let (ports, groups) = match node.keeps_vifs() {
        true => places(&request.app, &node).await?,
        false => Places::default(),
    };
    let all: Vec<Vif<'_>> = vifs(&ports, &groups).map(|id| Vif { id }).collect();
    Ok(json_field(StatusCode::OK, "vifs", &all))
}

/// `POST /v1/nodes/{node}/vifs`: attaches a VIF. Fields besides those that are known are accepted, because clients send their own.
async fn attach(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(mut body): StrictJson<Map<String, Value>>,
) -> Result<StatusCode> {
    let Some(Value::String(vif)) = body.remove("id") else {
        return Err(ApiError::bad_field("id", "is required and must be text").into());
    };
    check_vif("id", &vif)?;
    let is_double = body.contains_key("port_uuid") && body.contains_key("portgroup_uuid");
    if is_double && request.asked.has(microversion::VIF_PLACE) {
        return Err(ApiError::bad_field("port_uuid", "excludes portgroup_uuid").into());
    }
    let node = request.node(&ident).await?;
    if !node.keeps_vifs() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let place = place(body)?;
    let physical_networks = physical_networks(&request, &vif).await?;
    let needs_link = node.switches_networks();
    let wanted = VifRequest { vif, place, physical_networks, needs_link };
    let app = &request.app;
    retry_if_stale(|| async {
        let node = request.node(&ident).await?;
        check_idle(&node)?;
        let (ports, groups) = places(app, &node).await?;
        let place = choose_place(&wanted, &ports, &groups)?;
        let node = match app.conductor.has_cloud() {
            true => with_attached_vif(&node),
            false => node,
        };
        write(app, &node, (ports, groups), place, Some(wanted.vif.clone())).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/nodes/{node}/vifs/{vif}`: detaches a VIF.
async fn detach(
    request: Request,
    PathParam((ident, vif)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    let app = &request.app;
    retry_if_stale(|| async {
        let node = request.node(&ident).await?;
        check_vif("id", &vif)?;
        if !node.keeps_vifs() {
            return Ok(());
        }
        let (ports, groups) = places(app, &node).await?;
        // During the cleaning that follows an undeployment the VIFs are detached already, and clients expect to be told so.
        let missing = || VifRefused::NotAttached { vif: vif.clone(), node: node.label() };
        let place = place_of_vif(&vif, &ports, &groups).ok_or_else(missing)?;
        check_idle(&node)?;
        let node = match app.conductor.has_cloud() {
            true => with_detached_vif(&node, &vif),
            false => node,
        };
        write(app, &node, (ports, groups), place, None).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the port or port group that a client wants.
fn place(mut body: Map<String, Value>) -> Result<Option<VifPlace>, ApiError> {
    let mut id = |name| uuid(name, body.remove(name).unwrap_or_default());
    let port = id("port_uuid")?.map(|id| VifPlace::Port(PortUuid::from_untyped_uuid(id)));
    Ok(port.or(id("portgroup_uuid")?.map(VifPlace::Group)))
}

/// Returns the physical networks of the VIF's network, if there is a cloud to ask.
///
/// The cloud is asked as an administrator, so a caller who does not see every node names a VIF of its own project.
async fn physical_networks(request: &Request, vif: &str) -> Result<BTreeSet<String>> {
    let Some(seen) = request.app.conductor.look_at_vif(vif).await? else {
        return Ok(BTreeSet::new());
    };
    match visible_project(&request.caller) {
        Some(own) if seen.project.as_deref() != Some(&*own) => {
            Err(VifLookupError::Missing { vif: vif.to_owned() }.into())
        }
        Some(_) | None => Ok(seen.physical_networks),
    }
}

async fn places(app: &App, node: &Node) -> Result<Places> {
    Ok((app.store.ports_of(node.id).await?, app.store.port_groups_of(node.id).await?))
}

/// Writes `vif` at its place.
async fn write(
    app: &App,
    node: &Node,
    (mut ports, mut groups): Places,
    place: VifPlace,
    vif: Option<String>,
) -> Result<()> {
    ports.retain(|port| place == VifPlace::Port(port.id));
    groups.retain(|group| place == VifPlace::Group(group.id));
    for port in &mut ports {
        (port.vif, port.updated_at) = (vif.clone(), Some((app.clock)()));
    }
    for group in &mut groups {
        (group.content.vif, group.updated_at) = (vif.clone(), Some((app.clock)()));
    }
    app.store.update_vifs(node, &ports, &groups).await?;
    app.conductor.wake(node.id);
    Ok(())
}
