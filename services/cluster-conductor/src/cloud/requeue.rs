//! Decides when the next turn is due after the cloud part of a turn.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_core::{BackingOff, CloudObjectState, ClusterObservation, Key};
use jiff::Timestamp;
use reconcile::{Requeue, time_left};

use super::error::CloudWorkError;
use crate::settings::Settings;

/// Whether the cloud is creating, changing or deleting an object.
pub(crate) fn is_at_work(seen: &ClusterObservation) -> bool {
    let mut objects = seen.objects.values();
    objects.any(|it| matches!(it.state, CloudObjectState::Working | CloudObjectState::Deleting))
}

/// Returns when the next turn is due: at the next attempt for an object in back-off at the latest.
pub(crate) fn no_later(next: Requeue, held: &BTreeMap<Key, BackingOff>, now: Timestamp) -> Requeue {
    let due = held.values().map(|held| time_left(held.until, now)).min();
    match (next, due) {
        (Requeue::After(pause), Some(due)) => Requeue::After(pause.min(due)),
        (next, _) => next,
    }
}

/// Returns how long to wait after these failures.
pub(crate) fn pause(settings: &Settings, troubles: &[CloudWorkError]) -> Duration {
    let asked = troubles.iter().filter_map(CloudWorkError::retry_after).max();
    let is_short = troubles.iter().any(CloudWorkError::is_transient);
    asked.unwrap_or(if is_short { settings.soon() } else { settings.look_every })
}
