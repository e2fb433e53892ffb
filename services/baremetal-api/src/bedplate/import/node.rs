//! `/bedplate/v1/import/nodes/{node}`: imports a node with everything that belongs to it.

use axum::response::Response;
use baremetal_core::{
    Allocation, AllocationUuid, Driver, HistoryEntry, InspectionReport, MOST_PARTS, Node,
    NodeIdent, NodeUuid, Port, PortGroup, PortUuid, State, Stored, VolumeConnector, VolumeTarget,
    check_imported, check_imported_vifs, check_member, check_new_node,
};
use baremetal_store::{ImportEffect, ImportedNode, MOST_IMPORTED_HISTORY};
use hardware::MacAddress;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, JsonShape, PathParam, Query, StrictJson};
use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::info;
use uuid::Uuid;

use super::history;
use super::result::{ImportResult, effect, id_of};
use crate::error::{Error, Result};
use crate::node::{check_group, check_owner_and_lessee, parent};
use crate::request::Request;
use crate::stored::Served;
use crate::write::import;

/// The largest body in bytes: an inventory, and some hundred events.
pub(super) const BODY_LIMIT: usize = 16 << 20;

type Object = Map<String, Value>;

/// A node with everything that belongs to it, each as Ironic shows it with all fields, without links.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    node: Object,
    #[serde(default)]
    portgroups: Vec<Object>,
    #[serde(default)]
    ports: Vec<Object>,
    #[serde(default)]
    volume_connectors: Vec<Object>,
    #[serde(default)]
    volume_targets: Vec<Object>,
    /// The allocation that reserves the node.
    #[serde(default)]
    allocation: Option<Object>,
    /// The documents of the last inspection.
    #[serde(default)]
    inventory: Option<Inventory>,
    /// The events that the other service recorded.
    #[serde(default)]
    history: Vec<Object>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inventory {
    inventory: Value,
    plugin_data: Value,
}

pub(super) fn body() -> JsonShape {
    let parts = || JsonShape::list(JsonShape::any_object());
    let inventory = JsonShape::object([
        ("inventory", JsonShape::anything()),
        ("plugin_data", JsonShape::anything()),
    ]);
    JsonShape::object([("node", JsonShape::any_object())]).maybe([
        ("portgroups", parts()),
        ("ports", parts()),
        ("volume_connectors", parts()),
        ("volume_targets", parts()),
        ("allocation", JsonShape::any_object().or_null()),
        ("inventory", inventory.or_null()),
        ("history", parts()),
    ])
}

/// `PUT /bedplate/v1/import/nodes/{node}`: imports a node, or with `dry_run` checks whether it can be imported. A node that is here already
/// is not changed, so an interrupted import of many nodes is continued by repeating it.
pub(super) async fn put(
    request: Request,
    PathParam(ident): PathParam<String>,
    query: Query,
    StrictJson(body): StrictJson<Body>,
) -> Result<Response> {
    let effect = effect(query)?;
    let id = NodeUuid::from_untyped_uuid(id_of(&ident, &body.node)?);
    if request.app.store.find_node(&NodeIdent::Id(id)).await?.is_some() {
        return Ok(ImportResult::Present.response());
    }
    let mut imported = parsed(id, body, (request.app.clock)())?;
    let caller = &request.caller;
    imported.entry = imported.entry.by(caller.user(), caller.project());
    if effect == ImportEffect::Check {
        // A chassis and a parent are imported before the node, but not by a check.
        imported.node.chassis = None;
        imported.node.parent_node = None;
    }
    check(&request, &imported).await?;
    let written = request.app.store.import_node(&imported, effect).await;
    request.name_holder(written.map_err(Error::from)).await?;
    if effect == ImportEffect::Write {
        let node = &imported.node;
        info!(node.id = %id, state.to = %node.provision_state, "node {} was imported", node.label());
    }
    Ok(ImportResult::of(effect).response())
}

/// Checks the node by the rules of a new node, and by those of an import.
async fn check(request: &Request, imported: &ImportedNode) -> Result<()> {
    let node = &imported.node;
    check_imported(node, imported.allocation.as_ref())?;
    check_imported_vifs(&imported.ports, &imported.portgroups)?;
    let unsupported: Vec<String> =
        node.interfaces.unsupported(node.driver).map(|why| why.to_string()).collect();
    if !unsupported.is_empty() {
        return Err(ApiError::bad_request(unsupported.join("; ")).into());
    }
    check_group(&request.app, node)?;
    check_new_node(node, parent(&request.app, node).await?.as_ref())?;
    request.app.conductor.check_hosts(None, node)?;
    // The BMC of every other node was verified, so its settings must be usable here as well.
    if node.provision_state != State::Enroll {
        let checked = request.app.conductor.check_driver_info(node);
        checked.map_err(|why| ApiError::bad_request(format!("driver_info: {why}")))?;
    }
    Ok(check_owner_and_lessee(&request.app.auth, &request.caller, None, node).await?)
}

fn parsed(id: NodeUuid, body: Body, now: Timestamp) -> Result<ImportedNode> {
    let node = node(id, body.node, now)?;
    let portgroups: Vec<Stored<PortGroup>> = parts("portgroups", id, body.portgroups, now)?;
    let ports = ports(&node, body.ports, &portgroups, now)?;
    let connectors: Vec<Stored<VolumeConnector>> =
        parts("volume_connectors", id, body.volume_connectors, now)?;
    let targets: Vec<Stored<VolumeTarget>> = parts("volume_targets", id, body.volume_targets, now)?;
    let allocation = body.allocation.map(|it| allocation(it, now)).transpose()?;
    let report = |found: Inventory| InspectionReport {
        node: id,
        at: node.inspection_finished_at.unwrap_or(now),
        inventory: found.inventory,
        plugin_data: found.plugin_data,
    };
    Ok(ImportedNode {
        portgroups,
        ports,
        connectors,
        targets,
        allocation,
        inspection: body.inventory.map(report),
        history: events(id, body.history)?,
        entry: HistoryEntry::changed(&node, &node, "the node was imported".to_owned(), now),
        node,
    })
}

/// Parses the history, and sorts it by time.
fn events(node: NodeUuid, bodies: Vec<Object>) -> Result<Vec<HistoryEntry>, ApiError> {
    check_number("history", &bodies, MOST_IMPORTED_HISTORY)?;
    let read = bodies.into_iter().map(|body| {
        let name = label(&body);
        history::entry(node, body).map_err(within("history entry", &name))
    });
    let mut entries = read.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

fn node(id: NodeUuid, body: Object, now: Timestamp) -> Result<Node, ApiError> {
    // With an unknown driver, every message about an interface would name the wrong driver.
    let named = body.get("driver").and_then(Value::as_str).unwrap_or_default();
    let driver: Driver = named.parse().map_err(|why| ApiError::bad_field("driver", why))?;
    let mut node = Node::new(id, driver, now);
    import(&mut node, body)?;
    Ok(node)
}

fn ports(
    node: &Node,
    bodies: Vec<Object>,
    groups: &[Stored<PortGroup>],
    now: Timestamp,
) -> Result<Vec<Port>> {
    check_number("ports", &bodies, MOST_PARTS)?;
    let mut ports: Vec<Port> = Vec::with_capacity(bodies.len());
    for body in bodies {
        let name = label(&body);
        let mut port = Port::new(PortUuid::nil(), node.id, MacAddress::new([0; 6]), now);
        import(&mut port, body).map_err(within("port", &name))?;
        let port = port.with_checked_link()?;
        if port.id == PortUuid::nil() || port.node != node.id {
            return Err(within("port", &name)(foreign()).into());
        }
        if let Some(id) = port.portgroup {
            let unknown = || ApiError::bad_field("portgroup_uuid", "is no port group of the node");
            let group = groups.iter().find(|group| group.id == id).ok_or_else(unknown)?;
            let others: Vec<Port> =
                ports.iter().filter(|other| other.portgroup == Some(id)).cloned().collect();
            check_member(&port, group, &others)?;
        }
        ports.push(port);
    }
    Ok(ports)
}

/// Parses the resources of one kind that belong to the node.
fn parts<C: Served>(
    list: &str,
    node: NodeUuid,
    bodies: Vec<Object>,
    now: Timestamp,
) -> Result<Vec<Stored<C>>, ApiError> {
    check_number(list, &bodies, MOST_PARTS)?;
    let (_, kind) = C::NAME.split_once(' ').unwrap_or_default();
    let read = bodies.into_iter().map(|body| {
        let name = label(&body);
        let mut it = Stored::new(Uuid::nil(), C::default(), now);
        import(&mut it, body).map_err(within(kind, &name))?;
        match it.id.is_nil() || it.content.node() != Some(node) {
            true => Err(within(kind, &name)(foreign())),
            false => Ok(it),
        }
    });
    read.collect()
}

fn allocation(body: Object, now: Timestamp) -> Result<Allocation, ApiError> {
    let name = label(&body);
    let mut allocation = Allocation::new(AllocationUuid::nil(), now);
    import(&mut allocation, body).map_err(within("allocation", &name))?;
    Ok(allocation)
}

fn check_number(list: &str, bodies: &[Object], most: usize) -> Result<(), ApiError> {
    match bodies.len() > most {
        true => Err(ApiError::bad_field(list, format!("at most {most} are allowed"))),
        false => Ok(()),
    }
}

/// The id of a part as the client wrote it, for messages.
fn label(body: &Object) -> String {
    let id = body.get("uuid").and_then(Value::as_str).unwrap_or("without uuid");
    id.chars().take(64).collect()
}

/// Adds to a refusal to which part of the node it belongs.
fn within(kind: &str, name: &str) -> impl Fn(ApiError) -> ApiError {
    let prefix = format!("{kind} {name}");
    move |why| ApiError { message: format!("{prefix}: {}", why.message), ..why }
}

fn foreign() -> ApiError {
    ApiError::bad_request("uuid and node_uuid must be there, and node_uuid must be this node")
}
