//! The links in the documents of resources.

use std::fmt::{self, Write};

use serde::Serialize;
use serde::ser::{Error, SerializeSeq, Serializer};

use crate::Origin;

/// The two links to a resource: `self` with `/v1` in the path, and `bookmark` without.
#[derive(Clone, Copy)]
pub struct Links<'a, Id> {
    /// The origin under which the client reached the API.
    pub origin: &'a Origin,
    /// The path of the collection, such as `nodes`.
    pub collection: &'static str,
    pub id: Id,
    /// A path below the resource, such as `/ports`; may be empty.
    pub part: &'a str,
}

#[derive(Serialize)]
struct Link<'a> {
    href: &'a str,
    rel: &'static str,
}

impl<Id: fmt::Display> Serialize for Links<'_, Id> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Links { origin, collection, id, part } = self;
        let mut links = serializer.serialize_seq(Some(2))?;
        // Each link is built as one text, because a detailed list of a thousand nodes has ten thousand links.
        let mut href = String::with_capacity(128);
        for (version, rel) in [("/v1/", "self"), ("/", "bookmark")] {
            href.clear();
            href.extend([origin.as_str(), version, collection, "/"]);
            write!(href, "{id}{part}").map_err(S::Error::custom)?;
            links.serialize_element(&Link { href: &href, rel })?;
        }
        links.end()
    }
}
