//! `/` and `/v1`: the versions of the API, and its resources.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{
    Document, JsonShape, Links, Microversion, Origin, Route, Routes, document, json,
};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::app::App;
use crate::microversion as since;

/// Returns the routes of version discovery.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("versions")
        .at("/", [Route::public_get("List versions", root).returns(Document::shape())])
        .at("/v1", [Route::public_get("Show version 1", v1).returns(shape())])
}

/// `GET /`: lists the versions.
async fn root(origin: Origin) -> Response {
    let description =
        "Bedplate manages Kubernetes clusters through the OpenStack Container Infra API.";
    json(StatusCode::OK, &document("OpenStack Magnum API", description, &since::dialect(), &origin))
}

/// `GET /v1`: links to the resources.
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

/// The resources that clients look for in `GET /v1`, and the microversion that introduced each.
const RESOURCES: [(&str, Microversion); 7] = [
    ("clustertemplates", since::MINIMUM),
    ("clusters", since::MINIMUM),
    ("certificates", since::MINIMUM),
    ("mservices", since::MINIMUM),
    ("stats", since::STATS),
    ("quotas", since::QUOTAS),
    ("nodegroups", since::NODE_GROUPS),
];

/// The response schema of `GET /v1`.
fn shape() -> JsonShape {
    let media = JsonShape::object([("base", JsonShape::text()), ("type", JsonShape::text())]);
    let one = JsonShape::object([
        ("id", JsonShape::text()),
        ("links", JsonShape::links()),
        ("media_types", JsonShape::list(media)),
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
        let kind = "application/vnd.openstack.magnum.v1+json";
        object.serialize_entry("media_types", &[MediaType { base: "application/json", kind }])?;
        for (collection, _) in RESOURCES.iter().filter(|(_, came)| self.asked.has(*came)) {
            let links = Links { origin: self.origin, collection, id: "", part: "" };
            object.serialize_entry(collection, &links)?;
        }
        object.end()
    }
}
