//! The fields of an allocation, and the query parameters of a list of allocations.

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationState, AllocationUuid, NodeName,
    NodeUuid,
};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;
use serde_json::Value;

use crate::field::{Field, Kind, Read, Resource};
use crate::filter::{By, Filter};
use crate::microversion as since;
use crate::rule::ALLOCATE;
use crate::shown::Shown;
use crate::traits::parse_traits;
use crate::value::{list, text, time, uuid};
use crate::write::put;

impl Resource for Allocation {
    const NAME: &'static str = "an allocation";
    const COLLECTION: &'static str = "allocations";
    const FIELDS: &'static [Field<Allocation>] = FIELDS;
    const FILTERS: &'static [Filter<AllocationList>] = FILTERS;
    const QUERY_HIDES_LATER_FIELDS: bool = true;
    type List = AllocationList;
    type Sort = AllocationSort;
}

#[derive(Default)]
pub(crate) struct AllocationList {
    pub(crate) filter: AllocationFilter,
    /// Only the allocation of the node with this UUID or name.
    pub(crate) node: Option<String>,
    /// Whether the query names a state that does not exist.
    pub(crate) is_empty: bool,
}

/// The most candidate nodes that a request may name.
pub(super) const MOST_CANDIDATES: usize = 1000;

/// The longest error of another service in bytes.
const LONGEST_ERROR: usize = 1 << 16;

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
    field("node_uuid", 52, Text, |it, _| it.node.into())
        .imported(|it, name, new| put(&mut it.node, uuid(name, new).map(|id| id.map(NodeUuid::from_untyped_uuid)))),
    field("state", 52, Text, |it, _| it.state.as_str().into())
        .imported(|it, name, new| put(&mut it.state, state(name, new)))
        .filter(|list, by| { by_state(list, by); Ok(()) })
        .sort(AllocationSort::State),
    field("last_error", 52, Text, |it, _| (&it.last_error).into())
        .imported(|it, name, new| put(&mut it.last_error, text(name, new, LONGEST_ERROR))),
    field("resource_class", 52, Text, |it, _| (&it.resource_class).into())
        .create(|it, name, new| { it.resource_class = text(name, new, 80)?.or(it.resource_class.take()); Ok(()) })
        .filter(|list, by| put(&mut list.filter.resource_class, Ok(by.text())))
        .sort(AllocationSort::ResourceClass),
    field("traits", 52, Texts, |it, _| Shown::Texts(&it.traits))
        .create(|it, name, new| put(&mut it.traits, parse_traits(name, new))),
    // The handler removes the candidates from the request, because it has to look them up.
    field("candidate_nodes", 52, Texts, |it, _| Shown::Ids(&it.candidate_nodes))
        .create(|_, _, _| Ok(()))
        .imported(|it, name, new| put(&mut it.candidate_nodes, candidates(name, new))),
    field("extra", 52, Object, |it, _| (&it.extra).into())
        .change_object(ALLOCATE, |it| &mut it.extra),
    field("owner", 60, Text, |it, _| (&it.owner).into())
        .create(|it, name, new| put(&mut it.owner, text(name, new, 255)))
        .filter(|list, by| put(&mut list.filter.owner, Ok(by.text())))
        .sort(AllocationSort::Owner),
    field("created_at", 52, Text, |it, _| it.created_at.into())
        .imported(|it, name, new| { it.created_at = time(name, new)?.unwrap_or(it.created_at); Ok(()) })
        .sort(AllocationSort::CreatedAt),
    field("updated_at", 52, Text, |it, _| it.updated_at.into())
        .imported(|it, name, new| put(&mut it.updated_at, time(name, new)))
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

/// Narrows the list to the allocations in a state. None is in an unknown state.
fn by_state(list: &mut AllocationList, by: By<'_>) {
    list.filter.state = by.value.parse().ok();
    list.is_empty |= list.filter.state.is_none();
}

/// The state of an allocation of another service, which has finished its work on the allocation.
fn state(name: &str, value: Value) -> Result<AllocationState, ApiError> {
    let word = text(name, value, 255)?.unwrap_or_default();
    match word.parse().map_err(|why| ApiError::bad_field(name, why))? {
        AllocationState::Allocating => Err(ApiError::bad_field(
            name,
            "an allocation that still waits for its node cannot be imported",
        )),
        ended @ (AllocationState::Active | AllocationState::Error) => Ok(ended),
    }
}

/// The ids of the nodes to choose from. The choice is made already, so the nodes need not exist.
fn candidates(name: &str, value: Value) -> Result<Vec<NodeUuid>, ApiError> {
    let ids = list(name, value, MOST_CANDIDATES)?.into_iter().map(|one| {
        let id = uuid(name, one)?.ok_or_else(|| ApiError::bad_field(name, "must be UUIDs"))?;
        Ok(NodeUuid::from_untyped_uuid(id))
    });
    ids.collect()
}
