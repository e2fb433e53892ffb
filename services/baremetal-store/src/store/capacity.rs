//! Counts for operators: capacity, allocations and leases.

use baremetal_core::AllocationState;
use database::{Result, reading};
use jiff::Timestamp;

use crate::Store;
use crate::table::{ClassCapacity, allocation, lease, node};

/// The numbers of records that show how much of the site is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The nodes of each resource class, nodes without a class first.
    pub classes: Vec<ClassCapacity>,
    /// The allocations in each state that has any.
    pub allocations: Vec<(AllocationState, u64)>,
    /// The nodes that have a lease.
    pub lent_nodes: u64,
    /// The addresses that DHCP has leased.
    pub dhcp_leases: u64,
}

impl Store {
    /// Counts how much of the site is in use. Reads the whole table of nodes, so this is not for each request.
    pub async fn capacity(&self, now: Timestamp) -> Result<Capacity> {
        reading!(self.database, |c| Ok(Capacity {
            classes: node::capacity(c).await?,
            allocations: allocation::tally(c).await?,
            lent_nodes: node::count_lent(c).await?,
            dhcp_leases: lease::count(c, now).await?,
        }))
    }
}
