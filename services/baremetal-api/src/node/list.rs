//! A requested list of nodes, and the filters that are not fields of a node.

use baremetal_core::{NodeFilter, NodeIdent};
use openstack_api::ApiError;

use crate::error::Error;
use crate::filter::{By, Filter};
use crate::microversion as since;
use crate::request::{Request, relation, visible_project};
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

impl NodeList {
    /// The filter of the list, without the nodes that the caller does not see. `None` is a list without nodes.
    pub(super) async fn filter(self, request: &Request) -> Result<Option<NodeFilter>, Error> {
        let NodeList { mut filter, parent, conductor, is_faulty } = self;
        if let Some(parent) = parent {
            let parent = request.app.store.find_node(&parent).await?;
            let parent = parent.filter(|parent| relation(&request.caller, parent).is_some());
            let missing = || ApiError::bad_field("parent_node", "node not found");
            filter.parent_node = Some(parent.ok_or_else(missing)?.id);
        }
        filter.seen_by = visible_project(&request.caller);
        let elsewhere = conductor.is_some_and(|name| name != request.app.conductor.hostname());
        Ok(Some(filter).filter(|_| !is_faulty && !elsewhere))
    }
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
