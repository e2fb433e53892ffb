//! `/` and `/v1`: the version document, and the resources of version 1.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{
    Document, JsonShape, Links, Microversion, Origin, Route, Routes, Version, document, json,
};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::app::App;
use crate::microversion as since;

/// The routes of the version documents.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("versions")
        .at("/", [Route::public_get("List versions", root).returns(Document::shape())])
        .at("/v1", [Route::public_get("Show version 1", v1).returns(shape())])
        .at("/v1/", [Route::public_get("Show version 1", v1).returns(shape())])
}

/// `GET /`: lists the versions.
async fn root(origin: Origin) -> Response {
    let description = "Bedplate provisions bare metal machines by the OpenStack Bare Metal API.";
    json(StatusCode::OK, &document("OpenStack Ironic API", description, &since::dialect(), &origin))
}

/// `GET /v1`: lists the resources of version 1.
async fn v1(asked: Microversion, origin: Origin) -> Response {
    json(StatusCode::OK, &V1 { asked, origin: &origin })
}

struct V1<'a> {
    asked: Microversion,
    origin: &'a Origin,
}

#[derive(Serialize)]
struct Link {
    href: String,
    rel: &'static str,
}

#[derive(Serialize)]
struct MediaType {
    base: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The resources that clients look up here, with the microversion that introduced each.
const RESOURCES: [(&str, Microversion); 12] = [
    ("chassis", since::MINIMUM),
    ("nodes", since::MINIMUM),
    ("ports", since::MINIMUM),
    ("drivers", since::MINIMUM),
    ("portgroups", since::PORTGROUPS),
    ("volume", since::VOLUME),
    ("conductors", since::CONDUCTORS),
    ("allocations", since::ALLOCATIONS),
    ("deploy_templates", since::DEPLOY_TEMPLATES),
    ("shards", since::SHARD),
    ("runbooks", since::RUNBOOKS),
    ("inspection_rules", since::INSPECTION_RULES),
];

/// The JSON shape of version 1.
fn shape() -> JsonShape {
    let media = JsonShape::object([("base", JsonShape::text()), ("type", JsonShape::text())]);
    let one = JsonShape::object([
        ("id", JsonShape::text()),
        ("links", JsonShape::links()),
        ("media_types", media),
        ("version", Version::shape()),
    ]);
    RESOURCES.iter().fold(one, |one, (name, _)| one.maybe([(*name, JsonShape::links())]))
}

impl Serialize for V1<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("id", "v1")?;
        object.serialize_entry(
            "links",
            &[Link { href: format!("{}/v1/", self.origin), rel: "self" }],
        )?;
        let kind = "application/vnd.openstack.ironic.v1+json";
        object.serialize_entry("media_types", &MediaType { base: "application/json", kind })?;
        let known = RESOURCES.iter().filter(|(_, came)| self.asked.has(*came));
        for (collection, _) in known {
            let links = Links { origin: self.origin, collection, id: "", part: "" };
            object.serialize_entry(collection, &links)?;
        }
        object.serialize_entry("version", &Version::one(&since::dialect(), self.origin))?;
        object.end()
    }
}
