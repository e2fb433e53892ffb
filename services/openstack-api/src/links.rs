//! The links in the documents of resources.

use std::fmt::{self, Write};

use serde::Serialize;
use serde::ser::{Error, SerializeSeq, Serializer};
use uuid::Uuid;

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

impl Links<'_, Uuid> {
    /// Appends the links to JSON text. The collection and the part must need no escapes; an origin never does.
    pub fn write(&self, text: &mut Vec<u8>) {
        let Links { origin, collection, id, part } = self;
        let mut buffer = Uuid::encode_buffer();
        let id = &*id.hyphenated().encode_lower(&mut buffer);
        for (before, version, after) in [
            (r#"[{"href":""#, "/v1/", r#"","rel":"self"},"#),
            (r#"{"href":""#, "/", r#"","rel":"bookmark"}]"#),
        ] {
            for piece in [before, origin.as_str(), version, collection, "/", id, part, after] {
                text.extend_from_slice(piece.as_bytes());
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::{Forwarded, Scheme};

    #[test]
    fn links_are_written_as_they_are_serialized() {
        let host = Some("cloud.example:6385");
        let origin = Origin::new(&HeaderMap::new(), host, Scheme::Https, Forwarded::Ignored);
        let origin = &origin.unwrap();
        for part in ["", "/ports"] {
            let links = Links { origin, collection: "nodes", id: Uuid::from_u128(7), part };
            let mut text = Vec::new();
            links.write(&mut text);
            assert_eq!(String::from_utf8(text).unwrap(), serde_json::to_string(&links).unwrap());
        }
    }
}
