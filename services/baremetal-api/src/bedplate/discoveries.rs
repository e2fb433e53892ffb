//! `/bedplate/v1/discoveries`: machines and BMCs that were seen and are not enrolled, and their acceptance into nodes.

use agent_protocol::InspectionData;
use axum::response::Response;
use baremetal_core::{
    AcceptanceRequest, Discovery, DiscoveryId, Driver, NodeIdent, NodeUuid, bmc_addresses,
    check_new_node, neighbours,
};
use baremetal_store::{AcceptOutcome, PagePart, PageRows};
use hardware::MacAddress;
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, Listing, PathParam, Route, Routes, Shaped, StrictJson, Time,
    json, shaped,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::info;

use crate::app::App;
use crate::error::{Error, Result};
use crate::node::{check_group, check_owner_and_lessee, parent};
use crate::request::Request;
use crate::write::create;
use crate::{microversion, rule, secret};

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List discovered machines and BMCs", list);
    let forget = Route::delete("Delete a discovery", forget);
    let accept = Route::post("Accept a discovery into a node", accept);
    let found = JsonShape::list(Shown::shape());
    let list = list.returns(JsonShape::object([("discoveries", found)]));
    let accept = accept
        .with_rule(rule::ENROLL)
        .reads(body())
        .refuses([StatusCode::CONFLICT])
        .returns(Accepted::shape());
    Routes::new("bedplate")
        .at("/bedplate/v1/discoveries", [list])
        .at("/bedplate/v1/discoveries/{discovery}", [forget.answers(StatusCode::NO_CONTENT)])
        .at("/bedplate/v1/discoveries/{discovery}/accept", [accept])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: DiscoveryId = JsonShape::text(),
        kind: &'static str = JsonShape::enumeration(["machine", "bmc"]),
        mac: Option<MacAddress> = JsonShape::text().or_null(),
        first_seen_at: Time,
        last_seen_at: Time,
        bmc_addresses: Vec<String>,
        neighbours: Vec<ShownNeighbour>,
        refused: Option<&'a str> = JsonShape::text().or_null(),
        data: Option<&'a Value> = JsonShape::anything(),
    }
}

shaped! {
    /// The switch port that a network card is connected to, as the switch tells by LLDP.
    #[derive(Serialize)]
    struct ShownNeighbour {
        interface: String,
        mac: Option<MacAddress> = JsonShape::text().or_null(),
        switch_id: Option<String>,
        port_id: Option<String>,
        switch_name: Option<String>,
    }
}

/// `GET /bedplate/v1/discoveries`: lists discovered machines and BMCs.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("discoveries"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.list_discoveries_part(asked.elements, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |found| found.id, shown, more)?)
        })
    })
    .await
}

fn shown(found: &Discovery) -> Shown<'_> {
    let (kind, mac) = match found.id {
        DiscoveryId::Machine(mac) => ("machine", Some(mac)),
        DiscoveryId::Bmc(_) => ("bmc", None),
    };
    Shown {
        id: found.id,
        kind,
        mac,
        first_seen_at: Time(found.first_seen_at),
        last_seen_at: Time(found.last_seen_at),
        bmc_addresses: bmc_addresses(found),
        neighbours: found.inspection().as_ref().map(shown_neighbours).unwrap_or_default(),
        refused: found.refused(),
        data: found.data.as_ref(),
    }
}

fn shown_neighbours(data: &InspectionData) -> Vec<ShownNeighbour> {
    let shown = |it: baremetal_core::Neighbour| ShownNeighbour {
        interface: it.interface,
        mac: it.address,
        switch_id: it.switch_id,
        port_id: it.port_id,
        switch_name: it.switch_name,
    };
    neighbours(data).into_iter().map(shown).collect()
}

/// `DELETE /bedplate/v1/discoveries/{discovery}`: deletes a discovery from the list.
async fn forget(
    Request { app, .. }: Request,
    PathParam(id): PathParam<String>,
) -> Result<StatusCode> {
    app.store.delete_discovery(parsed(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parsed(id: &str) -> Result<DiscoveryId, ApiError> {
    id.parse().map_err(|why| ApiError::bad_field("id", why))
}

/// The fields of the new node that the discovery does not tell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    driver: Option<String>,
    #[serde(default)]
    driver_info: Map<String, Value>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    resource_class: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

fn body() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    JsonShape::object([]).maybe([
        ("driver", maybe()),
        ("driver_info", JsonShape::any_object()),
        ("name", maybe()),
        ("resource_class", maybe()),
        ("owner", maybe()),
        ("description", maybe()),
    ])
}

impl Body {
    /// The part that the plan of the acceptance needs.
    fn request(&mut self) -> Result<AcceptanceRequest, ApiError> {
        let driver = self.driver.as_deref().map(str::parse::<Driver>).transpose();
        let driver = driver.map_err(|why| ApiError::bad_field("driver", why))?;
        let mut driver_info = std::mem::take(&mut self.driver_info);
        secret::restore_masked("driver_info", &Map::new(), &mut driver_info)?;
        Ok(AcceptanceRequest { driver, driver_info })
    }

    /// The other fields, as a request to create the node has them.
    fn fields(self, driver: Driver) -> Map<String, Value> {
        let given = [
            ("driver", Some(driver.as_str().to_owned())),
            ("name", self.name),
            ("resource_class", self.resource_class),
            ("owner", self.owner),
            ("description", self.description),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

shaped! {
    #[derive(Serialize)]
    struct Accepted {
        uuid: NodeUuid,
        name: Option<String>,
        result: &'static str = JsonShape::enumeration(["accepted", "present"]),
    }
}

/// `POST /bedplate/v1/discoveries/{discovery}/accept`: makes a node of a discovery. Accepting it again changes nothing and names the node.
async fn accept(
    request: Request,
    PathParam(id): PathParam<String>,
    StrictJson(mut body): StrictJson<Body>,
) -> Result<Response> {
    let id = parsed(&id)?;
    let missing = || ApiError::not_found(format!("Discovery {id} could not be found."));
    let store = &request.app.store;
    let found = store.find_discovery(id).await?.ok_or_else(missing)?;
    if let Some(node) = found.node {
        return present(&request, node).await;
    }
    let asked = body.request()?;
    let mut planned = request.app.conductor.plan_acceptance(&found, &asked)?;
    let node = &mut planned.node;
    let fields = body.fields(node.driver);
    create(node, fields, microversion::MAXIMUM)?;
    check_group(&request.app, node)?;
    check_new_node(node, parent(&request.app, node).await?.as_ref())?;
    request.app.conductor.check_hosts(None, node)?;
    let checked = request.app.conductor.check_driver_info(node);
    checked.map_err(|why| ApiError::bad_request(format!("driver_info: {why}")))?;
    check_owner_and_lessee(&request.app.auth, &request.caller, None, node).await?;
    let caller = &request.caller;
    planned.entry = planned.entry.by(caller.user(), caller.project());
    let written = store.accept_discovery(id, &planned).await;
    let written = request.name_port_holder(written.map_err(Error::from)).await;
    match request.name_holder(written).await? {
        AcceptOutcome::Missing => Err(missing().into()),
        AcceptOutcome::Present(node) => present(&request, node).await,
        AcceptOutcome::Accepted => {
            let node = &planned.node;
            info!(node.id = %node.id, "discovery {id} is now node {}", node.label());
            Ok(answer(node.id, node.name.as_ref().map(ToString::to_string), "accepted"))
        }
    }
}

/// The answer for a discovery that was accepted into this node before.
async fn present(request: &Request, node: NodeUuid) -> Result<Response> {
    let found = request.app.store.find_node(&NodeIdent::Id(node)).await?;
    let name = found.and_then(|node| node.name).map(|name| name.to_string());
    Ok(answer(node, name, "present"))
}

fn answer(uuid: NodeUuid, name: Option<String>, result: &'static str) -> Response {
    json(StatusCode::OK, &Accepted { uuid, name, result })
}
