//! `/` and `/v1`: the version documents, which clients read first.

use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::policy::ApiState;
use crate::{
    JsonShape, Links, Microversion, Origin, Route, Routes, Shaped, VersionHeaders, json, shaped,
};

/// The differences between the version documents of the APIs.
#[derive(Debug)]
pub struct ApiVersions {
    /// The name that clients recognise: `OpenStack Ironic API`.
    pub name: &'static str,
    pub description: &'static str,
    /// Returns the range of microversions.
    pub headers: fn() -> VersionHeaders,
    /// The media type of version 1.
    pub media_type: &'static str,
    pub layout: VersionLayout,
    /// The resources that clients look for in `GET /v1`, and the microversion that introduced each.
    pub resources: &'static [(&'static str, Microversion)],
}

/// The layout of `GET /v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionLayout {
    /// One media type, and the range of microversions.
    Ironic,
    /// A list of media types.
    Magnum,
}

/// Returns the routes of the version documents.
pub fn version_routes<S>(api: &'static ApiVersions) -> Routes<S>
where
    S: ApiState + Clone + Send + Sync + 'static,
{
    let root = move |origin: Origin| async move { root(api, &origin) };
    let v1 = || {
        let show = move |asked: Microversion, origin: Origin| async move {
            json(StatusCode::OK, &V1 { api, asked, origin: &origin })
        };
        [Route::public_get("Show version 1", show).returns(api.shape())]
    };
    let routes = Routes::new("versions")
        .at("/", [Route::public_get("List versions", root).returns(Document::shape())])
        .at("/v1", v1());
    match api.layout {
        VersionLayout::Ironic => routes.at("/v1/", v1()),
        VersionLayout::Magnum => routes,
    }
}

/// `GET /`: lists the versions.
fn root(api: &ApiVersions, origin: &Origin) -> Response {
    let document = Document {
        name: api.name,
        description: api.description,
        default_version: api.version(origin),
        versions: [api.version(origin)],
    };
    json(StatusCode::OK, &document)
}

shaped! {
    #[derive(Serialize)]
    struct Document {
        name: &'static str,
        description: &'static str,
        default_version: Version,
        versions: [Version; 1] = JsonShape::list(Version::shape()),
    }
}

shaped! {
    #[derive(Serialize)]
    struct Version {
        id: &'static str,
        links: [Link; 1] = JsonShape::links(),
        status: &'static str,
        min_version: String,
        version: String,
    }
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

/// `GET /v1`: lists the resources.
struct V1<'a> {
    api: &'a ApiVersions,
    asked: Microversion,
    origin: &'a Origin,
}

impl ApiVersions {
    fn version(&self, origin: &Origin) -> Version {
        let VersionHeaders { minimum, maximum, .. } = (self.headers)();
        Version {
            id: "v1",
            links: [Link { href: format!("{origin}/v1/"), rel: "self" }],
            status: "CURRENT",
            min_version: minimum.to_string(),
            version: maximum.to_string(),
        }
    }

    /// The shape of `GET /v1`.
    fn shape(&self) -> JsonShape {
        let media = JsonShape::object([("base", JsonShape::text()), ("type", JsonShape::text())]);
        let one = JsonShape::object([("id", JsonShape::text()), ("links", JsonShape::links())]);
        let one = match self.layout {
            VersionLayout::Ironic => {
                one.and([("media_types", media), ("version", Version::shape())])
            }
            VersionLayout::Magnum => one.and([("media_types", JsonShape::list(media))]),
        };
        self.resources.iter().fold(one, |one, (name, _)| one.maybe([(*name, JsonShape::links())]))
    }
}

impl Serialize for V1<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let V1 { api, asked, origin } = *self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("id", "v1")?;
        object.serialize_entry("links", &[Link { href: format!("{origin}/v1/"), rel: "self" }])?;
        let media = MediaType { base: "application/json", kind: api.media_type };
        match api.layout {
            VersionLayout::Ironic => object.serialize_entry("media_types", &media)?,
            VersionLayout::Magnum => object.serialize_entry("media_types", &[media])?,
        }
        for (collection, _) in api.resources.iter().filter(|(_, came)| asked.has(*came)) {
            let links = Links { origin, collection, id: "", part: "" };
            object.serialize_entry(collection, &links)?;
        }
        if api.layout == VersionLayout::Ironic {
            object.serialize_entry("version", &api.version(origin))?;
        }
        object.end()
    }
}
