//! `/v1/drivers`: the drivers that nodes can use.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{Driver, Interface};
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, JsonShape, Links, Microversion, Origin, PathParam, Query, Route, Routes,
    flag, json, json_field,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::app::App;
use crate::error::Error;
use crate::microversion as since;
use crate::request::Request;

/// The routes of drivers.
pub(crate) fn routes() -> Routes<App> {
    let properties = Route::get("List the keys of driver_info a driver reads", properties);
    Routes::new("drivers")
        .at(
            "/v1/drivers",
            [Route::get("List drivers", list)
                .query_parameters(["type", "detail"])
                .returns(JsonShape::object([("drivers", JsonShape::list(shape()))]))],
        )
        .at("/v1/drivers/{driver}", [Route::get("Show a driver", show).returns(shape())])
        .at(
            "/v1/drivers/{driver}/properties",
            [properties.returns(JsonShape::map(JsonShape::text()))],
        )
}

/// The JSON shape of a driver.
fn shape() -> JsonShape {
    let shape = JsonShape::object([
        ("name", JsonShape::text()),
        ("hosts", JsonShape::list(JsonShape::text())),
        ("links", JsonShape::links()),
    ]);
    let shape = shape.maybe([("properties", JsonShape::links()), ("type", JsonShape::text())]);
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
    conductor: &'a str,
    extent: DetailLevel,
}

/// How many fields of a driver are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Brief,
    Detail,
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links =
            |part| Links { origin: self.origin, collection: "drivers", id: self.driver, part };
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", self.driver.as_str())?;
        object.serialize_entry("hosts", &[self.conductor])?;
        object.serialize_entry("links", &links(""))?;
        if self.asked.has(since::DRIVER_PROPERTIES) {
            object.serialize_entry("properties", &links("/properties"))?;
        }
        if self.asked.has(since::DYNAMIC_DRIVERS) {
            object.serialize_entry("type", "dynamic")?;
        }
        if self.extent == DetailLevel::Detail && self.asked.has(since::DYNAMIC_DRIVERS) {
            for interface in Interface::ALL.into_iter().filter(|each| self.asked.has(came(*each))) {
                let name = interface.as_str();
                let default = self.driver.default(interface);
                object.serialize_entry(&format!("default_{name}_interface"), default)?;
                let enabled = self.driver.supported(interface);
                object.serialize_entry(&format!("enabled_{name}_interfaces"), enabled)?;
            }
        }
        object.end()
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
async fn list(request: Request, origin: Origin, mut query: Query) -> Result<Response, Error> {
    let kind = query.take("type");
    let detail = query.take("detail");
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
    let extent = if detail { DetailLevel::Detail } else { DetailLevel::Brief };
    let conductor = request.app.conductor.hostname();
    let all = Driver::ALL.into_iter().filter(|_| !classic);
    let drivers: Vec<_> = all
        .map(|driver| View { driver, asked: request.asked, origin: &origin, conductor, extent })
        .collect();
    Ok(json_field(StatusCode::OK, "drivers", &drivers))
}

/// `GET /v1/drivers/{driver}`: shows a driver.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(name): PathParam<String>,
) -> Result<Response, Error> {
    let driver = find(&name)?;
    let conductor = request.app.conductor.hostname();
    let view = View {
        driver,
        asked: request.asked,
        origin: &origin,
        conductor,
        extent: DetailLevel::Detail,
    };
    Ok(json(StatusCode::OK, &view))
}

/// `GET /v1/drivers/{driver}/properties`: describes the keys of `driver_info` that the driver reads.
async fn properties(
    _caller: Caller,
    PathParam(name): PathParam<String>,
) -> Result<Response, Error> {
    let described = find(&name)?.properties().iter().map(|(key, meaning, required)| {
        let need = if *required { "Required." } else { "Optional." };
        (*key, format!("{meaning} {need}"))
    });
    Ok(json(StatusCode::OK, &described.collect::<BTreeMap<_, _>>()))
}

fn find(name: &str) -> Result<Driver, ApiError> {
    name.parse().map_err(|why: baremetal_core::UnknownDriver| ApiError::not_found(why.to_string()))
}
