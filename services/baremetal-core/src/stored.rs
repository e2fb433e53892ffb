//! Resources that only requests change, such as chassis: the store keeps each as one document.

use std::fmt::Debug;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::NodeUuid;

/// The content of a resource that is stored as one document.
pub trait Content: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The kind of the resource in the store. It never changes.
    const KIND: &'static str;

    /// The field that [`Content::key`] returns.
    const KEY: &'static str = "";

    /// The fields of the document that may contain secrets, whose values are sealed in the database.
    const SECRETS: &'static [&'static str] = &[];

    /// Whether resources of the kind belong to projects, so that [`Content::owner`] decides who sees them.
    const HAS_OWNER: bool = false;

    /// A name that no other resource of the kind has.
    fn name(&self) -> Option<&str> {
        None
    }

    /// A value besides the name that no other resource of the kind has, such as an address.
    fn key(&self) -> Option<String> {
        None
    }

    /// The node that the resource belongs to, and is deleted with.
    fn node(&self) -> Option<NodeUuid> {
        None
    }

    /// The project that the resource belongs to.
    fn owner(&self) -> Option<&str> {
        None
    }

    /// Whether every project sees the resource.
    fn is_public(&self) -> bool {
        false
    }
}

/// A resource with its identity and its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<C> {
    pub id: Uuid,
    /// Counts the writes. A write that names an older version is refused.
    pub version: i64,
    pub created_at: Timestamp,
    /// When the resource was last written; `None` before the first change.
    pub updated_at: Option<Timestamp>,
    pub content: C,
}

impl<C> Stored<C> {
    /// Makes a new resource.
    pub fn new(id: Uuid, content: C, now: Timestamp) -> Self {
        Stored { id, version: 1, created_at: now, updated_at: None, content }
    }
}

/// A filter for resources. A resource matches if all fields that are set match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredFilter {
    pub node: Option<NodeUuid>,
    pub key: Option<String>,
    /// Any of these shards of the resource's node; an empty list does not filter.
    pub shards: Vec<String>,
    /// Any of these conductor groups of the resource's node; an empty list does not filter.
    pub conductor_groups: Vec<String>,
    /// Restricts the list to resources that this project sees: resources of nodes that it owns or leases; or, if the kind has owners, its own
    /// resources and public ones. A marker outside of these resources counts as unknown.
    pub seen_by: Option<String>,
}

/// The sort keys of resources. A resource without a value sorts before resources with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredSort {
    /// The order in which they were created, as in Ironic.
    #[default]
    Creation,
    CreatedAt,
    Id,
    Name,
    Key,
    Owner,
    Public,
    UpdatedAt,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chassis;

    #[test]
    fn a_resource_has_neither_a_name_nor_a_node_nor_an_owner_unless_its_kind_says_so() {
        let chassis = Chassis::default();
        assert_eq!((chassis.name(), chassis.key(), chassis.node()), (None, None, None));
        assert_eq!((chassis.owner(), chassis.is_public()), (None, false));
    }
}
