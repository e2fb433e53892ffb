//! A requested list of nodes, and the filters that are not fields of a node.

use baremetal_core::{Chassis, Fault, NodeFilter, NodeIdent};
use openstack_api::ApiError;

use crate::error::Result;
use crate::filter::{By, Filter};
use crate::microversion as since;
use crate::request::{Request, relation, visible_project};
use crate::write::put;

#[derive(Default)]
pub(crate) struct NodeList {
    pub(crate) filter: NodeFilter,
    /// Only children of this node.
    pub(crate) parent: Option<NodeIdent>,
    /// Only nodes of this conductor.
    pub(crate) conductor: Option<String>,
    /// Whether the query names something that no node has.
    pub(crate) is_empty: bool,
}

impl NodeList {
    /// The filter of the list, without the nodes that the caller does not see. `None` is a list without nodes. An unknown chassis is refused,
    /// as in Ironic.
    pub(super) async fn filter(self, request: &Request) -> Result<Option<NodeFilter>> {
        let NodeList { mut filter, parent, conductor, is_empty } = self;
        if let Some(parent) = parent {
            let parent = request.app.store.find_node(&parent).await?;
            let parent = parent.filter(|parent| relation(&request.caller, parent).is_some());
            let Some(parent) = parent else { return Ok(None) };
            filter.parent_node = Some(parent.id);
        }
        if let Some(chassis) = filter.chassis
            && request.app.store.find_resource::<Chassis>(chassis).await?.is_none()
        {
            let why = format!("chassis_uuid: Chassis {chassis} could not be found.");
            return Err(ApiError::not_found(why).into());
        }
        filter.seen_by = visible_project(&request.caller);
        let living = request.app.conductor.hostnames();
        let elsewhere = conductor.is_some_and(|name| !living.contains(&name));
        Ok(Some(filter).filter(|_| !elsewhere && !is_empty))
    }
}

#[rustfmt::skip]
pub(super) const FILTERS: &[Filter<NodeList>] = &[
    Filter { name: "associated",           since: since::MINIMUM,     narrow: |list, by| put(&mut list.filter.associated, by.flag()) },
    Filter { name: "project",              since: since::LESSEE,      narrow: |list, by| put(&mut list.filter.project, Ok(by.text())) },
    Filter { name: "sharded",              since: since::SHARD,       narrow: |list, by| put(&mut list.filter.sharded, by.flag()) },
    // Ironic checks no version of this one.
    Filter { name: "description_contains", since: since::MINIMUM,     narrow: |list, by| put(&mut list.filter.description_contains, Ok(by.text())) },
    Filter { name: "include_children",     since: since::PARENT_NODE, narrow: |list, by| put(&mut list.filter.include_children, by.flag().map(Option::unwrap_or_default)) },
];

/// Narrows the list to the nodes of a driver. No node has an unknown driver.
pub(super) fn driver(list: &mut NodeList, by: By<'_>) {
    list.filter.driver = by.value.parse().ok();
    list.is_empty |= list.filter.driver.is_none();
}

pub(super) fn fault(by: By<'_>) -> Result<Option<Fault>, ApiError> {
    by.value.parse().map(Some).map_err(|why: String| by.refuse(why))
}
