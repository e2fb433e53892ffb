//! The next stage of a lease in a response.

use jiff::Timestamp;
use lease::{Due, LeaseStage};
use openstack_api::{Time, shaped};
use serde::Serialize;

shaped! {
    /// The next stage of a lease that is not extended.
    #[derive(Serialize)]
    pub(crate) struct NextStage {
        step: &'static str,
        at: Time,
    }
}

impl NextStage {
    /// Finds the next stage. `due` returns the stage that is due at a time; for a later time it depends on that time alone, so the stage is known
    /// now.
    pub(crate) fn of(due: impl Fn(Timestamp) -> Due, now: Timestamp) -> Option<NextStage> {
        let at = match due(now) {
            Due::Now(_) => now,
            Due::At(at) => at,
            Due::Nothing => return None,
        };
        match due(at) {
            Due::Now(step) => Some(NextStage { step: word(step), at: Time(at) }),
            Due::At(_) | Due::Nothing => None,
        }
    }
}

fn word(step: LeaseStage) -> &'static str {
    match step {
        LeaseStage::Warn { .. } => "warn",
        LeaseStage::SwitchOff { .. } => "shut_off",
        LeaseStage::Snapshot => "keep_copy",
        LeaseStage::WarnOfDeletion { .. } => "warn_of_deletion",
        LeaseStage::Delete => "delete",
    }
}
