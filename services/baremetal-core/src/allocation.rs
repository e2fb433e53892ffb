//! Allocations: which node somebody gets who asks for one of a kind.
//!
//! The words, states and rules are Ironic's: `ironic/conductor/allocations.py`, and "Allocations" of its API reference.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use lease::Wanted;
use newtype_uuid::GenericUuid;
use serde_json::{Map, Value};

use crate::{AllocationUuid, Frozen, Node, NodeName, NodeUuid, Reservation, State};

/// The key of `instance_info` that tells which traits were asked for.
const TRAITS: &str = "traits";

/// A wish for one node of a kind, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// Its id, for ever; that of the node's instance while it has one.
    pub id: AllocationUuid,
    /// Counts the writes; a write that names an older one is refused.
    pub version: i64,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Option<Timestamp>,
    /// Its logical name. A node of the same name is preferred.
    pub name: Option<NodeName>,
    /// What became of it.
    pub state: AllocationState,
    /// Why it came to nothing.
    pub last_error: Option<String>,
    /// The node that is reserved.
    pub node: Option<NodeUuid>,
    /// The resource class that the node must have. Only one that was written down for a node in use may have none.
    pub resource_class: Option<String>,
    /// The traits that the node must have.
    pub traits: BTreeSet<String>,
    /// The nodes to choose from; empty leaves the choice open.
    pub candidate_nodes: Vec<NodeUuid>,
    /// The client's own notes.
    pub extra: Map<String, Value>,
    /// The project that owns it.
    pub owner: Option<String>,
    /// That it is of a whole machine that was lent and installed with it.
    pub reservation: Option<Reservation>,
}

/// What became of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationState {
    /// Nobody has looked for a node yet.
    Allocating,
    /// A node is reserved.
    Active,
    /// There was none.
    Error,
}

/// The word names no state of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an allocation is allocating, active or in error, and never {word:?}")]
pub struct UnknownAllocationState {
    /// What was given, cut to a length fit for a message.
    pub word: String,
}

impl AllocationState {
    /// Every state.
    pub const ALL: [AllocationState; 3] =
        [AllocationState::Allocating, AllocationState::Active, AllocationState::Error];

    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            AllocationState::Allocating => "allocating",
            AllocationState::Active => "active",
            AllocationState::Error => "error",
        }
    }
}

impl FromStr for AllocationState {
    type Err = UnknownAllocationState;

    fn from_str(word: &str) -> Result<Self, UnknownAllocationState> {
        let known = AllocationState::ALL.into_iter().find(|state| state.as_str() == word);
        known.ok_or_else(|| UnknownAllocationState { word: word.chars().take(64).collect() })
    }
}

impl fmt::Display for AllocationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose nodes may be chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Anybody's.
    All,
    /// Those that this project owns or leases.
    Of(String),
    /// Those that can be lent to this project, and to anybody where there is none: its own, and those that nobody owns;
    /// without those that somebody leases already.
    Lendable(Option<String>),
}

impl Pool {
    /// Where an allocation of `owner` is served from.
    pub fn of(owner: Option<&str>) -> Pool {
        owner.map_or(Pool::All, |project| Pool::Of(project.to_owned()))
    }

    /// Whether `node` is in it.
    pub fn has(&self, node: &Node) -> bool {
        match self {
            Pool::All => true,
            Pool::Of(project) => {
                [&node.owner, &node.lessee].into_iter().any(|of| of.as_ref() == Some(project))
            }
            Pool::Lendable(project) => {
                node.lessee.is_none() && (node.owner.is_none() || node.owner == *project)
            }
        }
    }
}

/// Why a node in use cannot be what an allocation says. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Only what is in use is written down afterwards.
    #[error("node: node \"{node}\" is in state \"{state}\": it must be active")]
    State {
        /// Which node.
        node: String,
        /// Where it is.
        state: State,
    },
    /// Another instance uses it.
    #[error("node: node \"{node}\" is used by instance {instance}")]
    InUse {
        /// Which node.
        node: String,
        /// Who uses it.
        instance: uuid::Uuid,
    },
    /// It is of another kind.
    #[error("resource_class: that of node \"{node}\" is another")]
    ResourceClass {
        /// Which node.
        node: String,
    },
    /// It lacks a trait.
    #[error("traits: node \"{node}\" does not have them all")]
    Traits {
        /// Which node.
        node: String,
    },
    /// It is not among those that were named.
    #[error("candidate_nodes: node \"{node}\" is not among them")]
    Candidates {
        /// Which node.
        node: String,
    },
}

impl Allocation {
    /// Whether `node` can be reserved for this: free, known to be on or off, nobody's at the moment, of the kind, and not lent to
    /// somebody else.
    pub fn fits(&self, node: &Node, pool: &Pool) -> bool {
        node.provision_state == State::Available
            && node.maintenance.is_none()
            && node.retired.is_none()
            && node.instance_uuid.is_none()
            && node.power_state.is_some()
            && node.resource_class == self.resource_class
            && node.traits.is_superset(&self.traits)
            && (self.candidate_nodes.is_empty() || self.candidate_nodes.contains(&node.id))
            && pool.has(node)
            && !self.is_kept_for_others(node)
    }

    /// Whether `node` is lent until a time to somebody else, or on its way back.
    fn is_kept_for_others(&self, node: &Node) -> bool {
        let is_theirs = node.lessee == self.owner && node.wanted_by_lease() == Wanted::AsAsked;
        node.lending.is_some() && !is_theirs
    }

    /// The allocation with `node` reserved.
    fn on(&self, node: &Node) -> Allocation {
        Allocation {
            state: AllocationState::Active,
            last_error: None,
            node: Some(node.id),
            ..self.clone()
        }
    }

    /// The allocation, for which there is no node. `same_kind` says whether nodes were free but for their traits.
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
        Allocation { state: AllocationState::Error, last_error, node: None, ..self.clone() }
    }
}

/// `node` reserved for `allocation`, which it fits.
pub fn occupy(node: &Node, allocation: &Allocation) -> (Node, Allocation) {
    let mut taken = node.clone();
    taken.instance_uuid = Some(allocation.id.into_untyped_uuid());
    taken.allocation = Some(allocation.id);
    let traits = allocation.traits.iter().cloned().map(Value::String).collect();
    taken.instance_info.insert(TRAITS.to_owned(), Value::Array(traits));
    (taken, allocation.on(node))
}

/// `node`, which is in use already, written down as reserved for `allocation`.
///
/// # Errors
///
/// What the two do not agree in.
pub fn backfill(node: &Node, allocation: &Allocation) -> Result<(Node, Allocation), Mismatch> {
    let label = || node.label();
    if node.provision_state != State::Active {
        return Err(Mismatch::State { node: label(), state: node.provision_state });
    }
    let own = allocation.id.into_untyped_uuid();
    if let Some(instance) = node.instance_uuid
        && (instance != own || node.allocation.is_some())
    {
        return Err(Mismatch::InUse { node: label(), instance });
    }
    if allocation.resource_class.is_some() && allocation.resource_class != node.resource_class {
        return Err(Mismatch::ResourceClass { node: label() });
    }
    if !node.traits.is_superset(&allocation.traits) {
        return Err(Mismatch::Traits { node: label() });
    }
    if !allocation.candidate_nodes.is_empty() && !allocation.candidate_nodes.contains(&node.id) {
        return Err(Mismatch::Candidates { node: label() });
    }
    Ok(occupy(node, allocation))
}

/// Whether the node's allocation may be removed while the node is as it is.
///
/// # Errors
///
/// That somebody uses it.
pub fn check_release(node: &Node) -> Result<(), Frozen> {
    let state = node.provision_state;
    let lets_changes_in =
        matches!(state, State::Verifying | State::Inspecting | State::InspectWait);
    let in_use = state == State::Active || (state.is_busy() && !lets_changes_in);
    if in_use && node.maintenance.is_none() {
        return Err(Frozen::Allocated { node: node.label(), state });
    }
    Ok(())
}

/// `node` without its allocation.
pub fn release(node: &Node) -> Node {
    let mut free = node.clone();
    free.instance_uuid = None;
    free.allocation = None;
    free.instance_info.remove(TRAITS);
    free
}

/// The allocation that ends with this change of a node.
pub fn released(before: &Node, after: &Node) -> Option<AllocationUuid> {
    before.allocation.filter(|_| after.allocation.is_none())
}

#[cfg(test)]
mod tests;
