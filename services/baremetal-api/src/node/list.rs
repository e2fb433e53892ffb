//! A requested list of nodes, and the filters that are not fields of a node.

use baremetal_core::{NodeFilter, NodeIdent};
use openstack_api::ApiError;

use crate::filter::{By, Filter};
use crate::microversion as since;
use crate::write::put;

/// A requested list of nodes.
#[derive(Default)]
pub(crate) struct NodeList {
    pub(crate) filter: NodeFilter,
    /// Only children of this node.
    pub(crate) parent: Option<NodeIdent>,
    /// Only nodes of this conductor.
    pub(crate) conductor: Option<String>,
    /// Only nodes with a fault. No node here ever has a fault, so the list is empty.
    pub(crate) is_faulty: bool,
}

#[rustfmt::skip]
pub(super) const FILTERS: &[Filter<NodeList>] = &[
    Filter { name: "associated",           since: since::MINIMUM,     narrow: |list, by| put(&mut list.filter.associated, by.flag()) },
    Filter { name: "project",              since: since::LESSEE,      narrow: |list, by| put(&mut list.filter.project, Ok(by.text())) },
    Filter { name: "sharded",              since: since::SHARD,       narrow: |list, by| put(&mut list.filter.sharded, by.flag()) },
    Filter { name: "description_contains", since: since::DESCRIPTION, narrow: |list, by| put(&mut list.filter.description_contains, Ok(by.text())) },
    Filter { name: "include_children",     since: since::PARENT_NODE, narrow: |list, by| put(&mut list.filter.include_children, by.flag().map(Option::unwrap_or_default)) },
];

/// The faults that the Bare Metal API knows.
const FAULTS: [&str; 4] =
    ["power failure", "clean failure", "rescue abort failure", "service failure"];

/// Parses a fault.
pub(super) fn fault(by: By<'_>) -> Result<bool, ApiError> {
    match FAULTS.contains(&by.value) {
        true => Ok(true),
        false => Err(by.refuse(format!("must be one of: {}", FAULTS.join(", ")))),
    }
}
