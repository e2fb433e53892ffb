//! What lists can be asked for.

use hardware::MacAddress;
use uuid::Uuid;

use crate::{AllocationState, Driver, NodeUuid, State};

/// Which nodes. Every field that is set must fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFilter {
    /// By the instance that uses it.
    pub instance_uuid: Option<Uuid>,
    /// Whether an instance uses it.
    pub associated: Option<bool>,
    /// Whether it is in maintenance.
    pub maintenance: Option<bool>,
    /// By provision state.
    pub provision_state: Option<State>,
    /// By driver.
    pub driver: Option<Driver>,
    /// By resource class.
    pub resource_class: Option<String>,
    /// By conductor group.
    pub conductor_group: Option<String>,
    /// By owner.
    pub owner: Option<String>,
    /// By lessee.
    pub lessee: Option<String>,
    /// By owner or lessee.
    pub project: Option<String>,
    /// Only those that this project may see, whatever else is asked for: it owns or leases them. Nor does it see a marker
    /// that is none of them.
    pub seen_by: Option<String>,
    /// By any of these shards.
    pub shard: Vec<String>,
    /// Whether it has a shard.
    pub sharded: Option<bool>,
    /// Whether it is retired.
    pub retired: Option<bool>,
    /// By a part of its description.
    pub description_contains: Option<String>,
    /// By its parent. `None` lists only nodes without one, unless `include_children`.
    pub parent_node: Option<NodeUuid>,
    /// Whether to list nodes that have a parent too.
    pub include_children: bool,
    /// By instance name.
    pub instance_name: Option<String>,
    /// By chassis.
    pub chassis: Option<Uuid>,
    /// By rack; in the order of their positions when no other order is asked for.
    pub rack: Option<String>,
    /// Whether work or a change of power is under way.
    pub busy: Option<bool>,
    /// Whether its last work ended badly.
    pub failed: Option<bool>,
}

/// Which ports. Every field that is set must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortFilter {
    /// By node.
    pub node: Option<NodeUuid>,
    /// By any of these addresses; empty does not filter.
    pub addresses: Vec<MacAddress>,
    /// By port group.
    pub portgroup: Option<Uuid>,
    /// Only those of nodes that this project may see: it owns or leases them. Nor does it see a marker that is none of them.
    pub seen_by: Option<String>,
}

/// Which allocations. Every field that is set must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationFilter {
    /// By the node that is reserved.
    pub node: Option<NodeUuid>,
    /// By the resource class that was asked for.
    pub resource_class: Option<String>,
    /// By state.
    pub state: Option<AllocationState>,
    /// By owner.
    pub owner: Option<String>,
    /// Whether it is a reservation.
    pub reserved: Option<bool>,
    /// Only those that this project may see, whatever else is asked for: it owns them. Nor does it see a marker that is none
    /// of them.
    pub seen_by: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<Sort> {
    /// At most so many.
    pub limit: u32,
    /// Begin after this one.
    pub marker: Option<Uuid>,
    /// By what; ties are broken by id, so that pages never overlap.
    pub sort: Sort,
    /// Greatest first.
    pub descending: bool,
}

/// By what nodes can be sorted. Where it is unset, a node counts as less than where it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeSort {
    /// In the order of creation.
    #[default]
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

/// By what ports can be sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSort {
    /// In the order of creation.
    #[default]
    CreatedAt,
    Id,
    Address,
    UpdatedAt,
}

/// By what allocations can be sorted. Where it is unset, an allocation counts as less than where it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocationSort {
    /// In the order of creation.
    #[default]
    CreatedAt,
    Id,
    Name,
    State,
    ResourceClass,
    Owner,
    UpdatedAt,
}
