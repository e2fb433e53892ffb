//! The calls of one turn: planned, queued, in flight, and their results.

use std::collections::{BTreeSet, VecDeque};

use super::call_result::{ActionChange, CallFailure, CallResults};
use super::ledger::Ledger;
use crate::{Action, CloudObjectState, ClusterObservation, Failure, Kind, Problem};

/// Whether the cloud has room for all objects that are still to be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// Not checked in this turn.
    #[default]
    Unchecked,
    Enough,
    /// Objects would exceed a quota or the capacity of the hosts, so nothing is created.
    Short,
    /// The check failed, so no call starts in this turn.
    Unknown,
}

/// The calls of a turn so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnCalls {
    pub planned: BTreeSet<Action>,
    /// Planned actions that wait for a free slot.
    pub queued: VecDeque<Action>,
    pub in_flight: BTreeSet<Action>,
    pub capacity: Capacity,
    /// Whether a service asked for a later retry. Such a service must not get more requests in this turn.
    pub is_paused: bool,
    pub results: CallResults,
}

/// The calls that start now. When nothing starts and nothing is in flight, the turn has no more calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextCalls {
    /// Whether the cloud's quotas and capacity are checked before any call is planned.
    pub checks_capacity: bool,
    /// Actions whose intents are recorded in the ledger before any of `start` starts.
    pub planned: Vec<Action>,
    /// Actions that start now, in this order. Further planned actions wait for a free slot.
    pub start: Vec<Action>,
}

impl TurnCalls {
    /// Records the result of the check: the shortage that it found, or why it failed.
    pub fn note_capacity(&mut self, checked: Result<Option<Problem>, CallFailure>) {
        match checked {
            Ok(None) => self.capacity = Capacity::Enough,
            Ok(Some(shortage)) => {
                self.capacity = Capacity::Short;
                self.results.problem = Some(shortage);
            }
            Err(failure) => {
                self.capacity = Capacity::Unknown;
                self.results.problem = Some(failure.problem.clone());
                self.results.failures.push(failure);
            }
        }
    }

    /// Records the calls that start now. `ledger` does not contain their intents yet.
    pub fn begin(&mut self, next: &NextCalls, ledger: &Ledger) {
        self.results.is_gone_soon |= next.planned.iter().any(|it| is_asked_first(it, ledger));
        self.results.has_changed |= !next.planned.iter().all(may_run_in_parallel);
        self.planned.extend(next.planned.iter().cloned());
        self.queued.extend(next.planned.iter().cloned());
        let started = next.start.len().min(self.queued.len());
        self.in_flight.extend(self.queued.drain(..started));
    }

    /// Records the result of a call. Afterwards `seen` includes the result.
    pub fn finish(
        &mut self,
        action: &Action,
        outcome: Result<ActionChange, CallFailure>,
        seen: &mut ClusterObservation,
    ) {
        self.in_flight.remove(action);
        match outcome {
            Ok(ActionChange::Object(key, found)) => {
                self.results.given_up.extend(given_up(action, seen));
                seen.objects.insert(key, found);
            }
            Ok(ActionChange::Member(machine, said)) => {
                seen.machines.insert(machine, said);
            }
            Err(failure) => self.fail(action, failure, seen),
        }
    }

    fn fail(&mut self, action: &Action, failure: CallFailure, seen: &mut ClusterObservation) {
        if let (Action::Create(key), Some(why)) = (action, &failure.create_failure) {
            seen.failures.insert(key.clone(), Failure { why: why.clone(), object: None });
        }
        let is_worse = |old: &Problem| failure.problem.is_final && !old.is_final;
        if self.results.problem.as_ref().is_none_or(is_worse) {
            self.results.problem = Some(failure.problem.clone());
        }
        if failure.retry_after.is_some() {
            self.is_paused = true;
            self.queued.clear();
        }
        self.results.failures.push(failure);
    }
}

/// Whether the action may start while others are in flight.
pub(super) fn may_run_in_parallel(action: &Action) -> bool {
    matches!(action, Action::Create(_) | Action::SetRules(_))
}

/// Whether the action is the first delete request for an object that disappears at once.
fn is_asked_first(action: &Action, ledger: &Ledger) -> bool {
    let Action::Delete(key) = action else { return false };
    !ledger.is_leaving(key)
        && !matches!(key.kind(), Kind::LoadBalancer | Kind::Record | Kind::Server)
}

/// Describes an object that is deleted because the cloud failed at it.
fn given_up(action: &Action, seen: &ClusterObservation) -> Option<String> {
    let Action::Delete(key) = action else { return None };
    let CloudObjectState::Failed(why) = &seen.objects.get(key)?.state else { return None };
    Some(format!("deleting {key}, which failed in the cloud: {why}"))
}
