//! The rules of a VM's turns, and the observation that conclusions are drawn from.

use ::lease::LeaseSchedule;
use jiff::{SignedDuration, Timestamp};

use crate::{CloudObjectDetails, ClusterObservation, Key, ServerDetails, SnapshotUuid, TurnPauses};

use super::{RequestArrival, Snapshot, vm_machine};

/// The times that rule a VM's turn.
#[derive(Clone, Debug)]
pub struct VmRules {
    /// When the stages of a lease are due.
    pub schedule: LeaseSchedule,
    /// How long the cloud may still carry out a request that got no answer.
    pub lands_within: SignedDuration,
    /// How long to wait before a VM that did not switch off at the end of its lease is switched off again.
    pub ends_again_after: SignedDuration,
    /// How often to check whether the VM is idle.
    pub idle_every: SignedDuration,
    pub pauses: TurnPauses,
    /// The id of a new snapshot, should the turn need one.
    pub new_copy: SnapshotUuid,
}

/// Everything that a conclusion is drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct VmObservation<'a> {
    /// The observation of the VM's cloud objects.
    pub(super) seen: &'a ClusterObservation,
    /// Whether Nova received the request of the current action. Read before `seen`, so that the observation includes its effect.
    pub(super) arrival: RequestArrival,
    /// The snapshot that is kept of the VM, when there is one.
    pub(super) copy: Option<&'a Snapshot>,
    pub(super) rules: &'a VmRules,
    pub(super) now: Timestamp,
}

impl<'a> VmObservation<'a> {
    /// Returns the server of the observation: `None` when the cloud was not observed, `Some(None)` when the VM has no server.
    pub(super) fn server(&self) -> Option<Option<&'a ServerDetails>> {
        self.seen.at?;
        let found = self.seen.objects.get(&Key::Server(vm_machine()));
        Some(found.and_then(|found| match &found.facts {
            CloudObjectDetails::Server(facts) => Some(facts),
            CloudObjectDetails::None
            | CloudObjectDetails::Rules(_)
            | CloudObjectDetails::Addresses(_) => None,
        }))
    }
}
