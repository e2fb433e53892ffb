//! Decides which calls of a turn start now: creates, changes and deletes in the cloud, and changes in a cluster's Kubernetes.
//!
//! A create request starts as soon as its dependencies exist, whatever else is in flight. All other actions wait until nothing is in
//! flight, because their outcome depends on more than their dependencies.

mod call_result;
mod cluster_progress;
mod ledger;
mod next_turn;
mod object_owner;
#[cfg(test)]
mod tests;
mod turn_calls;

use jiff::Timestamp;

use crate::{
    Action, ClusterObservation, DesiredObjects, Key, RepairLimits, plan, servers_to_recreate,
    vm_plan,
};

pub use call_result::{ActionChange, CallFailure, CallResults};
pub use cluster_progress::{cluster_progress, may_reuse_observation};
pub use ledger::{Ledger, LedgerMatch, LedgerUpdate};
pub use next_turn::{CloudProgress, next_turn, pause_after};
pub use object_owner::ObjectOwner;
use turn_calls::may_run_in_parallel;
pub use turn_calls::{Capacity, NextCalls, TurnCalls};

/// How many calls of a turn are in flight at once.
const MAX_IN_FLIGHT: usize = 32;

/// The state that the calls of a turn lead to.
#[derive(Clone, Copy, Debug)]
pub struct CloudGoal<'a> {
    pub owner: ObjectOwner<'a>,
    pub shape: &'a DesiredObjects,
    /// When members are replaced.
    pub repair: &'a RepairLimits,
    /// When the turn began.
    pub now: Timestamp,
}

/// Decides which calls start now, given the latest observation, the ledger, and the calls of the turn so far.
///
/// Pure: the same inputs always give the same calls. No action is planned twice in a turn.
pub fn next_calls(
    goal: &CloudGoal<'_>,
    seen: &ClusterObservation,
    ledger: &Ledger,
    calls: &TurnCalls,
) -> NextCalls {
    if calls.is_paused || calls.capacity == Capacity::Unknown {
        return NextCalls::default();
    }
    let mut planned = Vec::new();
    // While actions wait for a free slot, a new plan could start nothing.
    if calls.queued.is_empty() {
        planned = ready(goal, seen);
        planned.retain(|action| !calls.planned.contains(action));
    }
    if !calls.in_flight.is_empty() {
        planned.retain(may_run_in_parallel);
    }
    let is_first = calls.planned.is_empty() && calls.capacity == Capacity::Unchecked;
    if is_first && planned.iter().any(|action| is_new(action, ledger)) {
        return NextCalls { checks_capacity: true, ..NextCalls::default() };
    }
    if calls.capacity == Capacity::Short {
        planned.retain(|action| !matches!(action, Action::Create(_)));
    }
    let free = MAX_IN_FLIGHT.saturating_sub(calls.in_flight.len());
    let start = calls.queued.iter().chain(&planned).take(free).cloned().collect();
    NextCalls { checks_capacity: false, planned, start }
}

/// Returns every action that the observation allows.
fn ready(goal: &CloudGoal<'_>, seen: &ClusterObservation) -> Vec<Action> {
    match goal.owner {
        ObjectOwner::Cluster(spec) => {
            let again = servers_to_recreate(spec, seen, goal.repair, goal.now);
            let again = again.into_iter().map(|machine| Action::Delete(Key::Server(machine)));
            plan(spec, seen).into_iter().chain(again).collect()
        }
        ObjectOwner::Vm(vm) => vm_plan(vm, goal.shape, seen),
    }
}

/// Whether the action creates an object that was never requested before.
fn is_new(action: &Action, ledger: &Ledger) -> bool {
    matches!(action, Action::Create(key) if ledger.line(key).is_none())
}
