//! Filters, sort orders and pages of the lists that the API offers.

use hardware::MacAddress;
use uuid::Uuid;

use crate::{AllocationState, Driver, Fault, NodeUuid, State};

/// A filter for nodes. A node matches if all fields that are set match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFilter {
    pub instance_uuid: Option<Uuid>,
    /// Whether an instance uses the node.
    pub associated: Option<bool>,
    pub maintenance: Option<bool>,
    pub fault: Option<Fault>,
    pub provision_state: Option<State>,
    pub driver: Option<Driver>,
    pub resource_class: Option<String>,
    pub conductor_group: Option<String>,
    pub owner: Option<String>,
    pub lessee: Option<String>,
    /// The owner or the lessee.
    pub project: Option<String>,
    /// Restricts the list to nodes that this project owns or leases, whatever the other fields say. A marker outside of these nodes counts
    /// as unknown, so that a caller cannot probe for ids.
    pub seen_by: Option<String>,
    /// Any of these shards.
    pub shard: Vec<String>,
    pub sharded: Option<bool>,
    pub retired: Option<bool>,
    pub description_contains: Option<String>,
    /// The parent. `None` lists only nodes without a parent, unless `include_children` is set.
    pub parent_node: Option<NodeUuid>,
    /// Whether to include nodes that have a parent.
    pub include_children: bool,
    pub instance_name: Option<String>,
    pub chassis: Option<Uuid>,
    /// The rack. Unless the caller asks for another order, the nodes are sorted by position.
    pub rack: Option<String>,
    /// Whether work or a change of power is in progress.
    pub busy: Option<bool>,
    pub failed: Option<bool>,
}

/// A filter for ports. A port matches if all fields that are set match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortFilter {
    pub node: Option<NodeUuid>,
    /// Any of these addresses; an empty list does not filter.
    pub addresses: Vec<MacAddress>,
    pub portgroup: Option<Uuid>,
    /// Text that the description contains, in upper or lower case.
    pub description_contains: Option<String>,
    /// Any of these shards of the port's node; an empty list does not filter.
    pub shards: Vec<String>,
    /// Any of these conductor groups of the port's node; an empty list does not filter.
    pub conductor_groups: Vec<String>,
    /// Restricts the list to ports of nodes that this project owns or leases. A marker outside of these ports counts as unknown.
    pub seen_by: Option<String>,
}

/// A filter for allocations. An allocation matches if all fields that are set match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationFilter {
    pub node: Option<NodeUuid>,
    pub resource_class: Option<String>,
    pub state: Option<AllocationState>,
    pub owner: Option<String>,
    /// Whether the allocation is a reservation.
    pub reserved: Option<bool>,
    /// Restricts the list to allocations that this project owns, whatever the other fields say. A marker outside of these allocations
    /// counts as unknown.
    pub seen_by: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<Sort> {
    /// The maximum number of entries.
    pub limit: u32,
    /// The entry after which the page begins.
    pub marker: Option<Uuid>,
    /// The sort key. Entries with equal keys are in the order of their creation, so that pages never overlap.
    pub sort: Sort,
    /// Whether the greatest entry comes first.
    pub descending: bool,
}

/// The sort keys of nodes. A node without a value sorts before nodes with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeSort {
    /// The order in which they were created, as in Ironic.
    #[default]
    Creation,
    CreatedAt,
    Id,
    Name,
    ProvisionState,
    PowerState,
    Driver,
    ResourceClass,
    UpdatedAt,
    ProvisionUpdatedAt,
    InstanceUuid,
    Maintenance,
    Owner,
    Lessee,
    ConductorGroup,
    Position,
}

/// The sort keys of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSort {
    /// The order in which they were created, as in Ironic.
    #[default]
    Creation,
    CreatedAt,
    Id,
    Address,
    UpdatedAt,
}

/// The sort keys of allocations. An allocation without a value sorts before allocations with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocationSort {
    /// The order in which they were created, as in Ironic.
    #[default]
    Creation,
    CreatedAt,
    Id,
    Name,
    State,
    ResourceClass,
    Owner,
    UpdatedAt,
}
