//! The fields of an allocation, and the query parameters of a list of allocations.

use std::collections::BTreeSet;

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationUuid, NodeName, Trait,
};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;
use serde_json::Value;

use crate::field::{Field, Kind, Read, Resource};
use crate::filter::Filter;
use crate::microversion as since;
use crate::rule::ALLOCATE;
use crate::shown::Shown;
use crate::traits::MOST;
use crate::value::{list, text, uuid};
use crate::write::put;

impl Resource for Allocation {
    const NAME: &'static str = "an allocation";
    const COLLECTION: &'static str = "allocations";
    const FIELDS: &'static [Field<Allocation>] = FIELDS;
    const FILTERS: &'static [Filter<AllocationList>] = FILTERS;
    type List = AllocationList;
    type Sort = AllocationSort;
}

/// A requested list of allocations.
#[derive(Default)]
pub(crate) struct AllocationList {
    pub(crate) filter: AllocationFilter,
    /// Only the allocation of the node with this UUID or name.
    pub(crate) node: Option<String>,
}

use Kind::{Links, Object, Text, Texts};

const fn field(
    name: &'static str,
    minor: u16,
    kind: Kind,
    read: Read<Allocation>,
) -> Field<Allocation> {
    Field::new(name, minor, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Allocation>] = &[
    field("uuid", 52, Text, |it, _| it.id.into())
        .create(|it, name, new| { it.id = uuid(name, new)?.map_or(it.id, AllocationUuid::from_untyped_uuid); Ok(()) })
        .sort(AllocationSort::Id),
    field("name", 52, Text, |it, _| it.name.as_ref().map(|name| name.as_str()).into())
        .change(ALLOCATE, |it, _, new| put(&mut it.name, name(new)))
        .sort(AllocationSort::Name),
    field("node_uuid", 52, Text, |it, _| it.node.into()),
    field("state", 52, Text, |it, _| it.state.as_str().into())
        .filter(|list, by| put(&mut list.filter.state, by.parsed()))
        .sort(AllocationSort::State),
    field("last_error", 52, Text, |it, _| (&it.last_error).into()),
    field("resource_class", 52, Text, |it, _| (&it.resource_class).into())
        .create(|it, name, new| { it.resource_class = text(name, new, 80)?.or(it.resource_class.take()); Ok(()) })
        .filter(|list, by| put(&mut list.filter.resource_class, Ok(by.text())))
        .sort(AllocationSort::ResourceClass),
    field("traits", 52, Texts, |it, _| Shown::Texts(&it.traits))
        .create(|it, name, new| put(&mut it.traits, traits(name, new))),
    // The handler removes the candidates from the request, because it has to look them up.
    field("candidate_nodes", 52, Texts, |it, _| Shown::Ids(&it.candidate_nodes))
        .create(|_, _, _| Ok(())),
    field("extra", 52, Object, |it, _| (&it.extra).into())
        .change_object(ALLOCATE, |it| &mut it.extra),
    field("owner", 60, Text, |it, _| (&it.owner).into())
        .create(|it, name, new| put(&mut it.owner, text(name, new, 255)))
        .filter(|list, by| put(&mut list.filter.owner, Ok(by.text())))
        .sort(AllocationSort::Owner),
    field("created_at", 52, Text, |it, _| it.created_at.into())
        .sort(AllocationSort::CreatedAt),
    field("updated_at", 52, Text, |it, _| it.updated_at.into())
        .sort(AllocationSort::UpdatedAt),
    field("links", 52, Links, |it, look| look.links("allocations", it.id, "")),
];

#[rustfmt::skip]
const FILTERS: &[Filter<AllocationList>] = &[
    Filter { name: "node", since: since::ALLOCATIONS, narrow: |list, by| put(&mut list.node, Ok(by.text())) },
];

fn name(value: Value) -> Result<Option<NodeName>, ApiError> {
    let given = text("name", value, 255)?.map(NodeName::try_from).transpose();
    given.map_err(|why| ApiError::bad_field("name", why))
}

/// Parses the traits that the node must have.
fn traits(name: &str, value: Value) -> Result<BTreeSet<String>, ApiError> {
    let given = list(name, value, MOST)?.into_iter().map(|one| {
        let one = text(name, one, 255)?.unwrap_or_default();
        Trait::try_from(one).map(String::from).map_err(|why| ApiError::bad_field(name, why))
    });
    given.collect()
}
