//! `/v1/drivers`: the drivers that nodes can use.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{BOOT_PROPERTIES, Driver, Interface};
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, JsonShape, Links, Microversion, Origin, PathParam, Query, Route, Routes,
    flag, json, json_field,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::app::App;
use crate::error::Result;
use crate::microversion as since;
use crate::request::Request;

pub(crate) fn routes() -> Routes<App> {
    let properties = Route::get("List the keys of driver_info a driver reads", properties);
    Routes::new("drivers")
        .at(
            "/v1/drivers",
            [Route::get("List drivers", list)
                .query_parameters(["type", "detail", "fields"])
                .returns(JsonShape::object([("drivers", JsonShape::list(shape()))]))],
        )
        .at(
            "/v1/drivers/{driver}",
            [Route::get("Show a driver", show).query_parameters(["fields"]).returns(shape())],
        )
        .at(
            "/v1/drivers/{driver}/properties",
            [properties.returns(JsonShape::map(JsonShape::text()))],
        )
}

fn shape() -> JsonShape {
    let shape = JsonShape::object([("links", JsonShape::links())]);
    let shape = shape
        .maybe([("name", JsonShape::text()), ("hosts", JsonShape::list(JsonShape::text()))])
        .maybe([("properties", JsonShape::links()), ("type", JsonShape::text())]);
    Interface::ALL.into_iter().map(Interface::as_str).fold(shape, |shape, name| {
        shape.maybe([
            (&*format!("default_{name}_interface"), JsonShape::text().or_null()),
            (&*format!("enabled_{name}_interfaces"), JsonShape::list(JsonShape::text())),
        ])
    })
}

/// A driver in the form that clients see.
struct View<'a> {
    driver: Driver,
    asked: Microversion,
    origin: &'a Origin,
    hosts: &'a [String],
    extent: DetailLevel,
    /// The fields that the client requested; `None`: all of the extent.
    only: Option<&'a [String]>,
}

/// How many fields of a driver are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Brief,
    Detail,
}

impl View<'_> {
    fn shows(&self, name: &str) -> bool {
        self.only.is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links =
            |part| Links { origin: self.origin, collection: "drivers", id: self.driver, part };
        let mut object = serializer.serialize_map(None)?;
        if self.shows("name") {
            object.serialize_entry("name", self.driver.as_str())?;
        }
        if self.shows("hosts") {
            object.serialize_entry("hosts", self.hosts)?;
        }
        object.serialize_entry("links", &links(""))?;
        if self.asked.has(since::DRIVER_PROPERTIES) && self.shows("properties") {
            object.serialize_entry("properties", &links("/properties"))?;
        }
        if self.asked.has(since::DYNAMIC_DRIVERS) && self.shows("type") {
            object.serialize_entry("type", "dynamic")?;
        }
        if self.extent == DetailLevel::Detail && self.asked.has(since::DYNAMIC_DRIVERS) {
            for interface in interfaces(self.asked) {
                let [default, enabled] = fields_of(interface);
                if self.shows(&default) {
                    object.serialize_entry(&default, self.driver.default(interface))?;
                }
                if self.shows(&enabled) {
                    object.serialize_entry(&enabled, self.driver.supported(interface))?;
                }
            }
        }
        object.end()
    }
}

/// The interfaces that drivers list in this version.
fn interfaces(asked: Microversion) -> impl Iterator<Item = Interface> {
    Interface::ALL.into_iter().filter(move |interface| asked.has(came(*interface)))
}

/// The names of the fields of an interface: its default, and its implementations.
fn fields_of(interface: Interface) -> [String; 2] {
    let name = interface.as_str();
    [format!("default_{name}_interface"), format!("enabled_{name}_interfaces")]
}

/// The fields that the query requests with `fields`; `None` requests all.
fn requested(query: &mut Query, asked: Microversion) -> Result<Option<Vec<String>>, ApiError> {
    let Some(raw) = query.take("fields") else { return Ok(None) };
    asked.need(since::DRIVER_FIELDS, "fields")?;
    let known = |name: &str| {
        ["name", "hosts", "links", "properties", "type"].contains(&name)
            || interfaces(asked).flat_map(fields_of).any(|field| field == name)
    };
    let wanted: Vec<String> = raw.split(',').map(|name| name.trim().to_owned()).collect();
    match wanted.iter().find(|name| !known(name)) {
        Some(unknown) => {
            let unknown: String = unknown.chars().take(64).collect();
            Err(ApiError::bad_field("fields", format!("a driver has no field {unknown:?}")))
        }
        None => Ok(Some(wanted)),
    }
}

/// The microversion in which drivers began to list an interface.
fn came(interface: Interface) -> Microversion {
    match interface {
        Interface::Storage => since::STORAGE,
        Interface::Rescue => since::RESCUE,
        Interface::Bios => since::BIOS,
        Interface::Firmware => since::FIRMWARE,
        Interface::Boot
        | Interface::Console
        | Interface::Deploy
        | Interface::Inspect
        | Interface::Management
        | Interface::Network
        | Interface::Power
        | Interface::Raid
        | Interface::Vendor => since::DYNAMIC_DRIVERS,
    }
}

/// `GET /v1/drivers`: lists drivers.
async fn list(request: Request, origin: Origin, mut query: Query) -> Result<Response> {
    let kind = query.take("type");
    let detail = query.take("detail");
    let only = requested(&mut query, request.asked)?;
    query.finish()?;
    if kind.is_some() || detail.is_some() {
        request.asked.need(since::DYNAMIC_DRIVERS, "type and detail")?;
    }
    let classic = match kind.as_deref() {
        None | Some("dynamic") => false,
        Some("classic") => true,
        Some(_) => return Err(ApiError::bad_field("type", "must be classic or dynamic").into()),
    };
    let detail = detail.map_or(Ok(false), |raw| flag("detail", &raw))?;
    if detail && only.is_some() {
        return Err(ApiError::bad_field("fields", "cannot be used together with detail").into());
    }
    let is_whole = detail || only.is_some();
    let extent = if is_whole { DetailLevel::Detail } else { DetailLevel::Brief };
    let (hosts, only) = (request.app.conductor.hostnames(), only.as_deref());
    let all = Driver::ALL.into_iter().filter(|_| !classic);
    let drivers: Vec<_> = all
        .map(|driver| View {
            driver,
            asked: request.asked,
            origin: &origin,
            hosts: &hosts,
            extent,
            only,
        })
        .collect();
    Ok(json_field(StatusCode::OK, "drivers", &drivers))
}

/// `GET /v1/drivers/{driver}`: shows a driver.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(name): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let only = requested(&mut query, request.asked)?;
    query.finish()?;
    let driver = find(&name)?;
    let hosts = request.app.conductor.hostnames();
    let view = View {
        driver,
        asked: request.asked,
        origin: &origin,
        hosts: &hosts,
        extent: DetailLevel::Detail,
        only: only.as_deref(),
    };
    Ok(json(StatusCode::OK, &view))
}

/// `GET /v1/drivers/{driver}/properties`: describes the keys of `driver_info` that the driver reads.
async fn properties(_caller: Caller, PathParam(name): PathParam<String>) -> Result<Response> {
    let driver = find(&name)?;
    let own = driver.properties().iter().copied();
    let of_boots = BOOT_PROPERTIES.into_iter().filter(|_| driver != Driver::FakeHardware);
    let all = own.chain(of_boots.map(|(key, meaning)| (key, meaning, false)));
    let described = all.map(|(key, meaning, required)| {
        let need = if required { "Required." } else { "Optional." };
        (key, format!("{meaning} {need}"))
    });
    Ok(json(StatusCode::OK, &described.collect::<BTreeMap<_, _>>()))
}

pub(crate) fn find(name: &str) -> Result<Driver, ApiError> {
    name.parse().map_err(|why: baremetal_core::UnknownDriver| ApiError::not_found(why.to_string()))
}
