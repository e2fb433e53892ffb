//! The version document, which clients read first.

use serde::Serialize;

use crate::{JsonShape, Origin, VersionHeaders};

/// A major version of an API.
#[derive(Debug, Serialize)]
pub struct Version {
    id: &'static str,
    links: [Link; 1],
    status: &'static str,
    min_version: String,
    version: String,
}

#[derive(Debug, Serialize)]
struct Link {
    href: String,
    rel: &'static str,
}

/// The body of `GET /`.
#[derive(Debug, Serialize)]
pub struct Document {
    name: &'static str,
    description: &'static str,
    default_version: Version,
    versions: [Version; 1],
}

impl Version {
    /// The JSON shape of a version.
    pub fn shape() -> JsonShape {
        JsonShape::object([
            ("id", JsonShape::text()),
            ("links", JsonShape::links()),
            ("status", JsonShape::text()),
            ("min_version", JsonShape::text()),
            ("version", JsonShape::text()),
        ])
    }

    /// Version 1 of the API with these microversions.
    pub fn one(dialect: &VersionHeaders, origin: &Origin) -> Self {
        Version {
            id: "v1",
            links: [Link { href: format!("{origin}/v1/"), rel: "self" }],
            status: "CURRENT",
            min_version: dialect.minimum.to_string(),
            version: dialect.maximum.to_string(),
        }
    }
}

impl Document {
    /// The JSON shape of the document.
    pub fn shape() -> JsonShape {
        JsonShape::object([
            ("name", JsonShape::text()),
            ("description", JsonShape::text()),
            ("default_version", Version::shape()),
            ("versions", JsonShape::list(Version::shape())),
        ])
    }
}

/// Makes the body of `GET /`.
pub fn document(
    name: &'static str,
    description: &'static str,
    dialect: &VersionHeaders,
    origin: &Origin,
) -> Document {
    Document {
        name,
        description,
        default_version: Version::one(dialect, origin),
        versions: [Version::one(dialect, origin)],
    }
}
