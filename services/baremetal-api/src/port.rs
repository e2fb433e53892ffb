//! `/v1/ports`: the MAC addresses by which network boot recognises machines.

mod field;

use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{
    Node, NodeIdent, Port, PortFilter, PortGroup, PortUuid, check_idle, check_member,
    check_port_deletion,
};
use hardware::MacAddress;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Hidden, JsonPatch, JsonShape, ListPart, ListRequest, Origin, PathParam, Query, Route,
    Routes, StrictJson, json, with_location,
};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Result;
use crate::field::{DetailLevel, FieldSet, in_body};
use crate::listing::list_of;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::stored::Purpose;
use crate::value::{malformed, text, uuid};
use crate::view::View;
use crate::write::{create as set_fields, patched};
use crate::{list_query, microversion as since, openapi, rule, stored};
use field::{PortList, knows_vtep};

/// The field with the switch port that a port is connected to.
const LINK: &str = "local_link_connection";

pub(crate) fn routes() -> Routes<App> {
    let ports = [
        Route::get("List ports", list)
            .with_rule(rule::READ)
            .query_parameters(list_query::PAGING)
            .query_parameters(["detail"])
            .query_parameters(list_query::names::<Port>())
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page("ports", openapi::shape::<Port>())),
        Route::post("Create a port", create)
            .with_rule(rule::SET_PORTS)
            .reads(openapi::body::<Port>([]))
            .answers(StatusCode::CREATED)
            .returns(openapi::shape::<Port>()),
    ];
    let port = [
        Route::get("Show a port", show)
            .with_rule(rule::READ)
            .query_parameters(["fields"])
            .returns(openapi::shape::<Port>()),
        Route::patch("Change a port", patch)
            .with_rule(rule::SET_DRIVER)
            .reads(openapi::patch_body())
            .returns(openapi::shape::<Port>()),
        Route::delete("Delete a port", forget)
            .with_rule(rule::SET_PORTS)
            .answers(StatusCode::NO_CONTENT),
    ];
    let detail = Route::get("List ports with all their fields", list_detail)
        .with_rule(rule::READ)
        .query_parameters(list_query::PAGING)
        .query_parameters(list_query::names::<Port>())
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("ports", openapi::shape::<Port>()));
    let of_node = Route::get("List a node's ports", list_of_node)
        .with_rule(rule::READ)
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "fields", "detail"])
        .returns(JsonShape::page("ports", openapi::shape::<Port>()));
    let detail_of_node =
        Route::get("List a node's ports with all their fields", list_detail_of_node)
            .with_rule(rule::READ)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "fields"])
            .returns(JsonShape::page("ports", openapi::shape::<Port>()));
    let of_group = Route::get("List a port group's ports", list_of_group)
        .hidden_before(since::PORTGROUP_FIELDS, Hidden::Path)
        .with_rule(rule::READ)
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "fields", "detail"])
        .returns(JsonShape::page("ports", openapi::shape::<Port>()));
    Routes::new("ports")
        .at("/v1/ports", ports)
        .at("/v1/ports/detail", [detail])
        .at("/v1/ports/{port}", port)
        .at("/v1/nodes/{node}/ports", [of_node])
        .at("/v1/nodes/{node}/ports/detail", [detail_of_node])
        .at("/v1/portgroups/{portgroup}/ports", [of_group])
}

/// `POST /v1/ports`: creates a port.
async fn create(
    request: Request,
    origin: Origin,
    StrictJson(mut body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let node = owner(&request, &mut body).await?;
    body.insert("node_uuid".to_owned(), node.id.to_string().into());
    let address = MacAddress::new([0; 6]);
    let mut port = Port::new(PortUuid::new_v4(), node.id, address, (request.app.clock)());
    set_fields(&mut port, body, request.asked)?;
    let port = port.with_checked_link()?;
    if port.link_network_type().is_some() {
        request.asked.need(since::LINK_NETWORK_TYPE, LINK)?;
    }
    if port.is_linked_to_vtep() && !knows_vtep(request.asked) {
        let (from, until) = (since::LINK_TO_VTEP, since::NO_LINK_TO_VTEP);
        let why = format!("{LINK}: VTEPs are known from API version {from} to before {until}");
        return Err(ApiError::not_acceptable(why).into());
    }
    check_idle(&node)?;
    check_group(&request, &port).await?;
    request.app.store.insert_port(&port).await?;
    let view = view_of(&request, &port, FieldSet::all(request.asked), &origin);
    Ok(with_location(json(StatusCode::CREATED, &view), &format!("{origin}/v1/ports/{}", port.id)))
}

/// Removes the node of a new port from `body`, and returns the node.
async fn owner(request: &Request, body: &mut Map<String, Value>) -> Result<Node> {
    let ident = match (body.remove("node_uuid"), body.remove("node_ident")) {
        (Some(_), Some(_)) => {
            let problem = "cannot be used together with node_uuid";
            return Err(ApiError::bad_field("node_ident", problem).into());
        }
        (Some(by_id), None) => uuid("node_uuid", by_id)?.map(|id| id.to_string()),
        (None, Some(by_name)) => {
            request.asked.need(since::PORT_NODE_NAME, "node_ident")?;
            text("node_ident", by_name, 255)?
        }
        (None, None) => None,
    };
    let ident = ident.ok_or_else(|| ApiError::bad_field("node_uuid", "is required"))?;
    Ok(request.node(&ident).await.map_err(in_body("node_uuid"))?)
}

/// `GET /v1/ports`: lists ports with a few fields each.
async fn list(request: Request, paging: ListRequest) -> Result<Response> {
    page(request, paging, DetailLevel::Brief, PortFilter::default()).await
}

/// `GET /v1/ports/detail`: lists ports with all fields.
async fn list_detail(request: Request, paging: ListRequest) -> Result<Response> {
    page(request, paging, DetailLevel::Detail, PortFilter::default()).await
}

/// `GET /v1/nodes/{node}/ports`: lists the ports of a node.
async fn list_of_node(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let node = Some(request.node(&ident).await?.id);
    page(request, paging, DetailLevel::Brief, PortFilter { node, ..PortFilter::default() }).await
}

/// `GET /v1/nodes/{node}/ports/detail`: lists the ports of a node with all fields.
async fn list_detail_of_node(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let node = Some(request.node(&ident).await?.id);
    page(request, paging, DetailLevel::Detail, PortFilter { node, ..PortFilter::default() }).await
}

/// `GET /v1/ports/{port}`: shows a port.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(id): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    let port = find(&request, &id).await?;
    Ok(json(StatusCode::OK, &view_of(&request, &port, shown, &origin)))
}

/// `PATCH /v1/ports/{port}`: changes a port.
async fn patch(
    request: Request,
    origin: Origin,
    PathParam(id): PathParam<String>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let app = &request.app;
    let port = retry_if_stale(|| async {
        let before = find(&request, &id).await?;
        let mut after = patched(&before, patch.clone(), request.asked)?;
        if before.link_network_type() != after.link_network_type() {
            request.asked.need(since::LINK_NETWORK_TYPE, LINK)?;
        }
        // A connection that an earlier version of the service stored is not checked until it changes.
        let link = |port: &Port| (port.local_link_connection.clone(), port.is_smartnic);
        if link(&before) != link(&after) {
            after = after.with_checked_link()?;
        }
        idle(app, &before).await?;
        check_group(&request, &after).await?;
        after.updated_at = Some((app.clock)());
        Ok(app.store.update_port(&after).await?)
    });
    let port = port.await?;
    let view = view_of(&request, &port, FieldSet::all(request.asked), &origin);
    Ok(json(StatusCode::OK, &view))
}

/// `DELETE /v1/ports/{port}`: deletes a port.
async fn forget(request: Request, PathParam(id): PathParam<String>) -> Result<StatusCode> {
    retry_if_stale(|| async {
        let port = find_by_id(&request, &id).await?;
        if let Some(node) = idle(&request.app, &port).await? {
            check_port_deletion(&node, &port)?;
        }
        Ok(request.app.store.delete_port(&port).await?)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses a port that cannot be in its group.
async fn check_group(request: &Request, port: &Port) -> Result<()> {
    let Some(id) = port.portgroup else { return Ok(()) };
    let missing = || {
        let why = format!("Port group {id} could not be found.");
        ApiError::bad_field("portgroup_uuid", why)
    };
    let store = &request.app.store;
    let group = store.find_resource::<PortGroup>(id).await?.ok_or_else(missing)?;
    request.check_access_to_part(group.content.node, missing).await?;
    Ok(check_member(port, &group, &store.ports_of_group(id).await?)?)
}

/// Refuses the change while work on the port's node is in progress. Returns the node.
async fn idle(app: &App, port: &Port) -> Result<Option<Node>> {
    let node = app.store.find_node(&NodeIdent::Id(port.node)).await?;
    if let Some(node) = &node {
        check_idle(node)?;
    }
    Ok(node)
}

/// Finds a port by id or name, if the caller may access its node under the rule of the route.
pub(crate) async fn find(request: &Request, ident: &str) -> Result<Port> {
    let found = match ident.parse() {
        Ok(NodeIdent::Id(id)) => {
            let id = PortUuid::from_untyped_uuid(id.into_untyped_uuid());
            request.app.store.find_port(id).await?
        }
        Ok(NodeIdent::Name(name)) => request.app.store.find_port_by_name(name.as_str()).await?,
        Err(_) => return Err(ApiError::bad_request(malformed(ident, "a UUID or a name")).into()),
    };
    accessible(request, ident, found).await
}

/// Like [`find`], by id only: Ironic deletes no port by its name.
async fn find_by_id(request: &Request, ident: &str) -> Result<Port> {
    let malformed = |_| ApiError::bad_request(malformed(ident, "a UUID"));
    let id: PortUuid = ident.parse().map_err(malformed)?;
    accessible(request, ident, request.app.store.find_port(id).await?).await
}

async fn accessible(request: &Request, ident: &str, found: Option<Port>) -> Result<Port> {
    let missing = || {
        let ident: String = ident.chars().take(64).collect();
        ApiError::not_found(format!("Port {ident} could not be found."))
    };
    let port = found.ok_or_else(missing)?;
    request.check_access_to_part(port.node, missing).await?;
    Ok(port)
}

/// `GET /v1/portgroups/{portgroup}/ports`: lists the ports of a port group.
async fn list_of_group(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let portgroup = Some(stored::find::<PortGroup>(&request, &ident, Purpose::See).await?.id);
    let within = PortFilter { portgroup, ..PortFilter::default() };
    page(request, paging, DetailLevel::Brief, within).await
}

/// Answers with one page of a list of ports, which shows only ports that also match `within`.
async fn page(
    request: Request,
    paging: ListRequest,
    level: DetailLevel,
    within: PortFilter,
) -> Result<Response> {
    let mut rest = paging.query.clone();
    let shown = FieldSet::listed(&mut rest, level, request.asked)?;
    let (list, page) = list_query::parse::<Port>(rest, request.asked)?;
    let filter = narrowed(&request, list, within).await?;
    let paging = list_query::linked::<Port>(paging, level);
    let reader = Arc::new((request, paging, filter));
    let (request, paging, _) = &*reader.clone();
    list_of("ports", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (request, paging, filter) = &*reader;
            let listed = request.app.store.list_ports_part(filter, &page, part).await?;
            let view = |port| view_of(request, port, shown, &paging.origin);
            let id = |port: &Port| port.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// The filter of the list, without the ports that the caller does not see.
async fn narrowed(request: &Request, list: PortList, within: PortFilter) -> Result<PortFilter> {
    let PortList { mut filter, node, portgroup } = list;
    // An unknown node is refused, as in Ironic, whether the query has its UUID or its name.
    if let Some(ident) = node.or(filter.node.map(|id| id.to_string())) {
        filter.node = Some(request.node_of_query("node", &ident).await?.id);
    }
    if let Some(ident) = portgroup {
        filter.portgroup = Some(stored::find::<PortGroup>(request, &ident, Purpose::See).await?.id);
    }
    filter.node = within.node.or(filter.node);
    filter.portgroup = within.portgroup.or(filter.portgroup);
    filter.seen_by = visible_project(&request.caller);
    check_combination(&filter)?;
    Ok(filter)
}

/// Refuses the combinations of filters that Ironic refuses.
fn check_combination(filter: &PortFilter) -> Result<(), ApiError> {
    let PortFilter { node, addresses, portgroup, shards, conductor_groups, .. } = filter;
    let owners = [node.is_some(), portgroup.is_some(), !shards.is_empty()];
    if owners.into_iter().filter(|is_set| *is_set).count() > 1 {
        let why = "only one of node, portgroup and shard can filter the list";
        return Err(ApiError::new(StatusCode::FORBIDDEN, why));
    }
    let others = node.is_some() || portgroup.is_some() || !addresses.is_empty();
    if others && !conductor_groups.is_empty() {
        let why = "conductor_groups: cannot be combined with node, portgroup or address";
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// A port in the form that clients see.
fn view_of<'a>(
    request: &'a Request,
    port: &'a Port,
    shown: FieldSet<Port>,
    origin: &'a Origin,
) -> View<'a, Port> {
    View { it: port, shown, context: request.context(origin) }
}
