//! The version document, which clients read first.

use serde::Serialize;

use crate::{Dialect, Origin, Shape};

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
    pub fn shape() -> Shape {
        Shape::object([
            ("id", Shape::text()),
            ("links", Shape::links()),
            ("status", Shape::text()),
            ("min_version", Shape::text()),
            ("version", Shape::text()),
        ])
    }

    /// Version 1 of the API with these microversions.
    pub fn one(dialect: &Dialect, origin: &Origin) -> Self {
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
    pub fn shape() -> Shape {
        Shape::object([
            ("name", Shape::text()),
            ("description", Shape::text()),
            ("default_version", Version::shape()),
            ("versions", Shape::list(Version::shape())),
        ])
    }
}

/// Makes the body of `GET /`.
pub fn document(
    name: &'static str,
    description: &'static str,
    dialect: &Dialect,
    origin: &Origin,
) -> Document {
    Document {
        name,
        description,
        default_version: Version::one(dialect, origin),
        versions: [Version::one(dialect, origin)],
    }
}
