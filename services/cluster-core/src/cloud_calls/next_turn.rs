//! Decides when the next turn is due after the last call of a turn.

use std::collections::BTreeMap;
use std::time::Duration;

use decision::{Requeue, time_left};
use jiff::Timestamp;

use super::call_result::CallFailure;
use super::ledger::LedgerMatch;
use crate::{BackingOff, CloudObjectState, ClusterObservation, Key, TurnPauses};

/// How far the cloud is when a turn has no more calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudProgress {
    Failed,
    /// Objects disappeared, so more can be done at once.
    Changed,
    /// The cloud creates, changes or deletes an object, or an object may still appear.
    InProgress,
    Settled,
}

impl CloudProgress {
    /// Returns how far the cloud is. `is_gone_soon`: an object was deleted that disappears at once.
    pub fn of(
        failures: &[CallFailure],
        ledger: LedgerMatch,
        is_gone_soon: bool,
        seen: &ClusterObservation,
    ) -> CloudProgress {
        let is_at_work = seen.objects.values().any(|found| {
            matches!(found.state, CloudObjectState::Working | CloudObjectState::Deleting)
        });
        if !failures.is_empty() {
            CloudProgress::Failed
        } else if ledger == LedgerMatch::Removed || is_gone_soon {
            CloudProgress::Changed
        } else if is_at_work || ledger == LedgerMatch::MayStillCome {
            CloudProgress::InProgress
        } else {
            CloudProgress::Settled
        }
    }
}

/// Returns when the next turn is due: at the next attempt for an object of `held` at the latest.
pub fn next_turn(
    progress: CloudProgress,
    failures: &[CallFailure],
    held: &BTreeMap<Key, BackingOff>,
    (pauses, now): (&TurnPauses, Timestamp),
) -> Requeue {
    let pause = match progress {
        CloudProgress::Failed => pause_after(failures, pauses),
        CloudProgress::Changed => return Requeue::Now,
        CloudProgress::InProgress => pauses.soon,
        CloudProgress::Settled => pauses.look_every,
    };
    let due = held.values().map(|held| time_left(held.until, now)).min();
    Requeue::After(due.map_or(pause, |due| due.min(pause)))
}

/// Returns how long to wait after these failures.
pub fn pause_after(failures: &[CallFailure], pauses: &TurnPauses) -> Duration {
    let asked = failures.iter().filter_map(|failure| failure.retry_after).max();
    let is_short = failures.iter().any(|failure| failure.is_transient);
    asked.unwrap_or(if is_short { pauses.soon } else { pauses.look_every })
}
