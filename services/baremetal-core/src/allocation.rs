//! Allocations: requests for one node with given properties, and the choice of the node.
//!
//! Terms, states and rules are Ironic's: `ironic/conductor/allocations.py`, and "Allocations" in its API reference.

use std::collections::BTreeSet;
use std::str::FromStr;

use jiff::Timestamp;
use lease::RequiredState;
use newtype_uuid::GenericUuid;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AllocationUuid, Node, NodeName, NodeUuid, State};

/// The key of `instance_info` with the requested traits.
const TRAITS: &str = "traits";

/// A request for one node with given properties, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The id, which never changes. The reserved node has the same `instance_uuid`.
    pub id: AllocationUuid,
    /// Counts the writes. A write that names an older version is refused.
    pub version: i64,
    pub created_at: Timestamp,
    /// When the allocation was last written; `None` before the first change.
    pub updated_at: Option<Timestamp>,
    /// The logical name. A node with the same name is preferred.
    pub name: Option<NodeName>,
    pub state: AllocationState,
    /// Why no node was reserved.
    pub last_error: Option<String>,
    /// The reserved node.
    pub node: Option<NodeUuid>,
    /// The resource class that the node must have. `None` only if the allocation was created for a node that was already in use.
    pub resource_class: Option<String>,
    /// The traits that the node must have.
    pub traits: BTreeSet<String>,
    /// The nodes to choose from; an empty list allows all nodes.
    pub candidate_nodes: Vec<NodeUuid>,
    /// Free-form notes of the client, ignored by the service.
    pub extra: Map<String, Value>,
    /// The project that owns the allocation.
    pub owner: Option<String>,
    /// Set if the allocation is a reservation: its node was lent and installed together with the allocation.
    pub reservation: Option<Reservation>,
}

impl Allocation {
    /// Makes a request for any node.
    pub fn new(id: AllocationUuid, now: Timestamp) -> Self {
        Allocation {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            name: None,
            state: AllocationState::Allocating,
            last_error: None,
            node: None,
            resource_class: None,
            traits: BTreeSet::new(),
            candidate_nodes: Vec::new(),
            extra: Map::new(),
            owner: None,
            reservation: None,
        }
    }

    /// Makes the record of an allocation for `node`, which is in use already. The id is the node's `instance_uuid`, if there is one.
    pub fn of_node_in_use(node: &Node, id: AllocationUuid, now: Timestamp) -> Self {
        let id = node.instance_uuid.map_or(id, AllocationUuid::from_untyped_uuid);
        let resource_class = node.resource_class.clone();
        Allocation { resource_class, ..Allocation::new(id, now) }
    }
}

/// The fields that make an allocation a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The id or name of the user who made the reservation.
    pub user: Option<String>,
    /// The URL of the requested image.
    pub image: String,
}

words::words! {
    /// The result of an allocation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AllocationState {
        /// The conductor has not chosen a node yet.
        Allocating = "allocating",
        /// A node is reserved.
        Active = "active",
        /// No node matched.
        Error = "error",
    }
}

/// The error for a word that names no state of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown allocation state {word:?}; use allocating, active or error")]
pub struct UnknownAllocationState {
    /// The word that was given, cut to 64 characters for the message.
    pub word: String,
}

impl FromStr for AllocationState {
    type Err = UnknownAllocationState;

    fn from_str(word: &str) -> Result<Self, UnknownAllocationState> {
        AllocationState::find(word)
            .ok_or_else(|| UnknownAllocationState { word: word.chars().take(64).collect() })
    }
}

/// The nodes that an allocation may choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePool {
    All,
    /// The nodes that this project owns or leases.
    Project(String),
    /// The nodes that can be lent to this project: its own nodes and nodes without an owner, except nodes that are leased already. Without
    /// a project, only nodes without an owner.
    Lendable(Option<String>),
}

impl NodePool {
    /// Returns the pool for allocations of `owner`.
    pub fn of(owner: Option<&str>) -> NodePool {
        owner.map_or(NodePool::All, |project| NodePool::Project(project.to_owned()))
    }

    /// Returns whether `node` belongs to the pool.
    pub fn has(&self, node: &Node) -> bool {
        match self {
            NodePool::All => true,
            NodePool::Project(project) => {
                [&node.owner, &node.lessee].into_iter().any(|of| of.as_ref() == Some(project))
            }
            NodePool::Lendable(project) => {
                node.lessee.is_none() && (node.owner.is_none() || node.owner == *project)
            }
        }
    }
}

/// Why a node in use cannot be recorded as the result of an allocation. Nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackfillMismatch {
    /// An allocation can be created afterwards only for an active node.
    #[error("node: node \"{node}\" is in state \"{state}\" but must be active")]
    State { node: String, state: State },
    #[error("node: node \"{node}\" is used by instance {instance}")]
    InUse { node: String, instance: uuid::Uuid },
    #[error("resource_class: node \"{node}\" has another resource class")]
    ResourceClass { node: String },
    #[error("traits: node \"{node}\" lacks some of the traits")]
    Traits { node: String },
    #[error("candidate_nodes: node \"{node}\" is not listed")]
    Candidates { node: String },
}

impl Allocation {
    /// Returns whether `node` can be reserved for this allocation: available and unused, power state known, with the requested properties,
    /// and not lent to somebody else.
    pub fn fits(&self, node: &Node, pool: &NodePool) -> bool {
        node.provision_state == State::Available
            && node.maintenance.is_none()
            && node.retired.is_none()
            && node.instance_uuid.is_none()
            && node.power_state.is_some()
            && node.resource_class == self.resource_class
            && node.traits.is_superset(&self.traits)
            && (self.candidate_nodes.is_empty() || self.candidate_nodes.contains(&node.id))
            && pool.has(node)
            && !self.is_lent_to_others(node)
    }

    /// Returns whether `node` has a lease of another project, or a lease that has ended.
    fn is_lent_to_others(&self, node: &Node) -> bool {
        let is_theirs =
            node.lessee == self.owner && node.wanted_by_lease() == RequiredState::AsRequested;
        node.lending.is_some() && !is_theirs
    }

    /// Returns the allocation with `node` reserved.
    fn on(&self, node: &Node) -> Allocation {
        Allocation {
            state: AllocationState::Active,
            last_error: None,
            node: Some(node.id),
            // Ironic processes an allocation after its creation. Here it is processed at once.
            updated_at: Some(self.created_at),
            ..self.clone()
        }
    }

    /// Returns the allocation without a node. `same_kind` says whether free nodes matched except for their traits.
    pub fn failed(&self, same_kind: bool) -> Allocation {
        let class = self.resource_class.as_deref().unwrap_or_default();
        let traits = || self.traits.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let why = if same_kind && !self.traits.is_empty() {
            format!("no suitable nodes have the requested traits {}", traits())
        } else if self.candidate_nodes.is_empty() {
            format!("no available nodes match the resource class {class}")
        } else {
            format!(
                "none of the requested nodes are available and match the resource class {class}"
            )
        };
        let last_error = Some(format!("Failed to process allocation {}: {why}.", self.id));
        Allocation {
            state: AllocationState::Error,
            last_error,
            node: None,
            updated_at: Some(self.created_at),
            ..self.clone()
        }
    }
}

/// Reserves `node`, which fits `allocation`.
pub fn assign(node: &Node, allocation: &Allocation) -> (Node, Allocation) {
    let mut taken = node.clone();
    taken.instance_uuid = Some(allocation.id.into_untyped_uuid());
    taken.allocation = Some(allocation.id);
    let traits = allocation.traits.iter().cloned().map(Value::String).collect();
    taken.instance_info.insert(TRAITS.to_owned(), Value::Array(traits));
    (taken, allocation.on(node))
}

/// Records `node`, which is in use already, as the node of `allocation`.
///
/// # Errors
///
/// Returns the first property in which node and allocation disagree.
pub fn backfill(
    node: &Node,
    allocation: &Allocation,
) -> Result<(Node, Allocation), BackfillMismatch> {
    let label = || node.label();
    if node.provision_state != State::Active {
        return Err(BackfillMismatch::State { node: label(), state: node.provision_state });
    }
    let own = allocation.id.into_untyped_uuid();
    if let Some(instance) = node.instance_uuid
        && (instance != own || node.allocation.is_some())
    {
        return Err(BackfillMismatch::InUse { node: label(), instance });
    }
    if allocation.resource_class.is_some() && allocation.resource_class != node.resource_class {
        return Err(BackfillMismatch::ResourceClass { node: label() });
    }
    if !node.traits.is_superset(&allocation.traits) {
        return Err(BackfillMismatch::Traits { node: label() });
    }
    if !allocation.candidate_nodes.is_empty() && !allocation.candidate_nodes.contains(&node.id) {
        return Err(BackfillMismatch::Candidates { node: label() });
    }
    Ok(assign(node, allocation))
}

/// Returns `node` without its allocation.
pub fn release(node: &Node) -> Node {
    let mut free = node.clone();
    free.instance_uuid = None;
    free.allocation = None;
    free.instance_info.remove(TRAITS);
    free
}

/// Returns the allocation that ends with this change of a node.
pub fn ended_allocation(before: &Node, after: &Node) -> Option<AllocationUuid> {
    before.allocation.filter(|_| after.allocation.is_none())
}

#[cfg(test)]
mod tests;
