//! Typed ids of the Bare Metal API's resources, and the names of nodes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use kinds::*;

mod kinds {
    newtype_uuid_macros::impl_typed_uuid_kinds! {
        kinds = {
            Node = {},
            Port = {},
            Work = {},
            History = {},
            Allocation = {},
        },
    }
}

/// A node's logical name: RFC 3986 unreserved characters, so the name fits in a URL wherever a UUID does, and never a UUID itself, so a
/// name cannot be mistaken for an id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// The error for text that cannot be a node's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a valid name: use 1 to 255 characters of letters, digits, '-', '.', '_' and '~', \
     and not be a UUID"
)]
pub struct InvalidName {
    /// The text that was given, cut to 64 characters for the message.
    pub raw: String,
}

/// Names that no node gets, because `/v1/nodes/NAME` is something else (`get_controller_reserved_names` of Ironic).
pub const RESERVED_NODE_NAMES: [&str; 6] =
    ["detail", "maintenance", "management", "states", "validate", "vendor_passthru"];

impl NodeName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = InvalidName;

    fn from_str(raw: &str) -> Result<Self, InvalidName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        if raw.is_empty()
            || raw.len() > 255
            || !raw.chars().all(legal)
            || Uuid::parse_str(raw).is_ok()
        {
            return Err(InvalidName { raw: raw.chars().take(64).collect() });
        }
        Ok(NodeName(raw.to_owned()))
    }
}

words::strings!(NodeName);

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A caller's reference to a node in a URL or body: the node's id or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeIdent {
    Id(NodeUuid),
    Name(NodeName),
}

impl FromStr for NodeIdent {
    type Err = InvalidName;

    fn from_str(raw: &str) -> Result<Self, InvalidName> {
        match raw.parse::<NodeUuid>() {
            Ok(id) => Ok(NodeIdent::Id(id)),
            Err(_) => Ok(NodeIdent::Name(raw.parse()?)),
        }
    }
}

impl fmt::Display for NodeIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeIdent::Id(id) => id.fmt(f),
            NodeIdent::Name(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_in_a_url() {
        assert!("rack1-u07.lab_a~2".parse::<NodeName>().is_ok());
        for bad in ["", "a b", "a/b", "ü", "a%20", "7c9e6679-7425-40de-944b-e07fc1f90ae7"] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad:?} passed");
        }
        assert!("n".repeat(255).parse::<NodeName>().is_ok());
        assert!("n".repeat(256).parse::<NodeName>().is_err());
    }
}
