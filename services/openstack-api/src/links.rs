//! The links every resource carries.

use std::fmt::{self, Write};

use serde::Serialize;
use serde::ser::{Error, SerializeSeq, Serializer};

use crate::Origin;

/// The pair of links to a resource: `self` below `/v1`, and a `bookmark` without it.
#[derive(Clone, Copy)]
pub struct Links<'a, Id> {
    /// Where the client reached us.
    pub origin: &'a Origin,
    /// `nodes`.
    pub collection: &'static str,
    /// Which one.
    pub id: Id,
    /// `/ports`, or nothing.
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
        // Whole texts, not pieces: a detailed list of a thousand nodes has ten thousand of these.
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
