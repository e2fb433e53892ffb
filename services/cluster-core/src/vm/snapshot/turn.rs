//! The decisions of a turn of a snapshot.

use std::time::Duration;

use decision::{Decision, Requeue, time_left};
use jiff::{SignedDuration, Timestamp};

use super::{Snapshot, SnapshotImage, SnapshotOrigin, SnapshotState};
use crate::vm::{Vm, VmEvent};
use crate::{Backoff, DesiredState, RecordChange, ServerState, TurnPauses};

/// The change of a snapshot, with everything that is written in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotUpdate {
    pub snapshot: Snapshot,
    pub events: Vec<VmEvent>,
}

/// An observation of the images of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotObservation {
    Seen {
        /// The images with the name of the snapshot, and the one with its recorded id.
        images: Vec<SnapshotImage>,
        /// The VM, if it still exists.
        vm: Option<Box<Vm>>,
    },
    /// clusterd has no cloud.
    NoCloud,
    /// The cloud does not answer.
    Unknown {
        why: String,
        /// When to retry, if the service said so.
        retry_after: Option<Duration>,
    },
}

/// A call to the cloud for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotAction {
    /// Request the image of the server with this id from Nova.
    Request {
        server: String,
    },
    DeleteImage(String),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// Nova makes the image with this id.
    Requested(String),
    /// The request got no answer: Nova may have received it.
    Unanswered(String),
    /// Nova refused the request for this reason.
    Refused(String),
    Deleted,
    DeleteFailed {
        why: String,
        /// When to retry, if the service said so.
        retry_after: Option<Duration>,
    },
}

/// The times that rule a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRules {
    /// How long a snapshot of an ended lease is kept after its VM is deleted.
    pub keep: SignedDuration,
    /// The waiting time after a failure.
    pub backoff: Backoff,
    /// How long the cloud may still carry out a request that got no answer.
    pub lands_within: SignedDuration,
    pub pauses: TurnPauses,
}

/// How often a request that gets no answer is sent.
const MOST_TIMES: u32 = 3;

/// A decision of a turn of a snapshot.
type Planned<A = SnapshotAction> = Decision<RecordChange<SnapshotUpdate>, A>;

/// Decides the next step of `of`.
///
/// Pure: the same inputs always give the same decision.
pub fn plan_snapshot(
    of: &Snapshot,
    seen: &SnapshotObservation,
    rules: &SnapshotRules,
    now: Timestamp,
) -> Planned {
    let look_every = rules.pauses.look_every;
    match seen {
        SnapshotObservation::NoCloud => Decision::rest(Requeue::After(look_every)),
        SnapshotObservation::Unknown { why, retry_after } => {
            Decision::rest(Requeue::After(retry_after.unwrap_or(look_every)))
                .warn_of(why, "cannot observe the images of the snapshot")
        }
        SnapshotObservation::Seen { images, vm } => {
            SnapshotTurn { of, images, vm: vm.as_deref(), rules, now }.decide()
        }
    }
}

/// Decides what follows from the calls of [`plan_snapshot`].
pub fn after_snapshot_actions<A>(
    of: &Snapshot,
    outcomes: &[SnapshotOutcome],
    rules: &SnapshotRules,
    now: Timestamp,
) -> Planned<A> {
    let TurnPauses { soon, look_every } = rules.pauses;
    let write = |snapshot, events| written(of, snapshot, events, Requeue::After(soon));
    // A request is the only action of its decision, and the first delete that fails is the last one.
    match outcomes.last() {
        Some(SnapshotOutcome::Requested(image)) => {
            let image = Some(image.clone());
            write(Snapshot { image, state: SnapshotState::Making, ..of.clone() }, Vec::new())
        }
        // An image that Nova made anyway is found by its name.
        Some(SnapshotOutcome::Unanswered(why)) => write(of.unanswered(), Vec::new())
            .warn_of(why, "the request for the snapshot got no answer"),
        Some(SnapshotOutcome::Refused(why)) => {
            let (failed, events) = of.failed(why, now);
            write(failed, events)
        }
        Some(SnapshotOutcome::DeleteFailed { why, retry_after }) => {
            Decision::rest(Requeue::After(retry_after.unwrap_or(look_every)))
                .warn_of(why, "cannot delete an image of the snapshot")
        }
        Some(SnapshotOutcome::Deleted) | None => Decision::rest(Requeue::After(soon)),
    }
}

impl SnapshotOutcome {
    /// Whether the calls that follow in the same decision are skipped: a service that fails gets no more requests in this turn.
    pub fn skips_rest(&self) -> bool {
        matches!(self, SnapshotOutcome::DeleteFailed { .. })
    }
}

/// Returns the decision to write the snapshot, unless nothing has changed.
fn written<A>(
    before: &Snapshot,
    snapshot: Snapshot,
    events: Vec<VmEvent>,
    next_turn: Requeue,
) -> Planned<A> {
    if *before == snapshot && events.is_empty() {
        return Decision::rest(next_turn);
    }
    Decision::write(RecordChange::Write(SnapshotUpdate { snapshot, events }), next_turn)
}

/// A turn of a snapshot whose images were observed.
struct SnapshotTurn<'a> {
    /// The snapshot before the turn.
    of: &'a Snapshot,
    images: &'a [SnapshotImage],
    vm: Option<&'a Vm>,
    rules: &'a SnapshotRules,
    now: Timestamp,
}

impl SnapshotTurn<'_> {
    fn decide(&self) -> Planned {
        let mut it = self.of.clone();
        if it.state == SnapshotState::Leaving {
            return self.leave();
        }
        let is_there = self.vm.filter(|vm| vm.desire == DesiredState::Exist);
        if it.why == SnapshotOrigin::LeaseEnded {
            if is_there.is_some_and(|vm| vm.copy != Some(it.id)) {
                // The end of the lease was undone, so the snapshot is no longer needed.
                return self.look_again(it.leaving(), Vec::new());
            }
            if is_there.is_none() && it.state == SnapshotState::Active && it.keep_until.is_none() {
                it.keep_until = Some(after(self.now, self.rules.keep));
            }
            if self.vm.is_none() && it.state == SnapshotState::Failed {
                return self.look_again(it.leaving(), Vec::new());
            }
        }
        if it.keep_until.is_some_and(|until| until <= self.now) {
            return self.look_again(it.leaving(), Vec::new());
        }
        let image = self.image(&it);
        let others = self.images.iter().filter(|other| image.is_some_and(|it| it.id != other.id));
        let others: Vec<SnapshotImage> = others.cloned().collect();
        if it.state != SnapshotState::Failed && !others.is_empty() {
            it.image = image.map(|image| image.id.clone());
            return self.delete(it, Vec::new(), &others);
        }
        self.next(it, image, is_there)
    }

    /// Decides by the state of a snapshot that has one image at most.
    fn next(&self, mut it: Snapshot, image: Option<&SnapshotImage>, vm: Option<&Vm>) -> Planned {
        match (it.state, image) {
            (SnapshotState::Leaving, _) => self.leave(),
            (SnapshotState::Wanted | SnapshotState::Making, Some(image)) => {
                (it.image, it.state) = (Some(image.id.clone()), SnapshotState::Making);
                match &image.usable {
                    None => self.look_again(it, Vec::new()),
                    Some(Ok(())) => self.made(it),
                    Some(Err(why)) => {
                        let (it, events) = it.failed(why, self.now);
                        self.delete(it, events, self.images)
                    }
                }
            }
            (SnapshotState::Wanted, None) => self.wanted(it, vm),
            (SnapshotState::Making, None) if it.image.is_some() => {
                self.fail(&it, "the cloud no longer has its image")
            }
            (SnapshotState::Making, None) => match self.lands_by() {
                Some(by) => self.rest(it, Some(by)),
                None if it.times < MOST_TIMES => {
                    it.state = SnapshotState::Wanted;
                    self.wanted(it, vm)
                }
                None => self.fail(&it, "Nova never started it"),
            },
            (SnapshotState::Active, Some(image)) if !matches!(image.usable, Some(Err(_))) => {
                let until = it.keep_until;
                self.rest(it, until)
            }
            (SnapshotState::Active, _) => self.fail(&it, "its image was deleted in the cloud"),
            (SnapshotState::Failed, Some(_)) => {
                it.image = None;
                self.delete(it, Vec::new(), self.images)
            }
            (SnapshotState::Failed, None) => {
                it.image = None;
                self.again(it, vm)
            }
        }
    }

    /// Returns the image of the snapshot: the recorded one, or else the first one with its name.
    fn image(&self, it: &Snapshot) -> Option<&SnapshotImage> {
        match &it.image {
            Some(id) => self.images.iter().find(|image| image.id == *id),
            None => self.images.iter().min_by(|one, other| one.id.cmp(&other.id)),
        }
    }

    /// Returns until when Nova may still carry out the last request; `None` when it no longer can.
    fn lands_by(&self) -> Option<Timestamp> {
        let by = self.of.asked_at.map(|at| after(at, self.rules.lands_within));
        by.filter(|by| *by > self.now)
    }

    /// Deletes the images, and then the record.
    fn leave(&self) -> Planned {
        if !self.images.is_empty() {
            return self.delete(self.of.clone(), Vec::new(), self.images);
        }
        match self.lands_by() {
            Some(by) => self.rest(self.of.clone(), Some(by)),
            None => Decision::write(RecordChange::Delete, Requeue::OnChange),
        }
    }

    fn made(&self, it: Snapshot) -> Planned {
        let message = format!("snapshot {} is ready", it.name);
        let event = VmEvent::new(it.vm, crate::Severity::Info, "SnapshotMade", message, self.now);
        let made = Snapshot {
            state: SnapshotState::Active,
            made_at: Some(self.now),
            reason: None,
            failures: 0,
            failed_at: None,
            ..it
        };
        self.look_again(made, vec![event])
    }

    /// Fails the snapshot, which has no image that can be used.
    fn fail(&self, it: &Snapshot, why: &str) -> Planned {
        let (failed, events) = it.failed(why, self.now);
        self.look_again(Snapshot { image: None, ..failed }, events)
    }

    /// Requests the image, if the VM's server is in a state that allows it.
    fn wanted(&self, it: Snapshot, vm: Option<&Vm>) -> Planned {
        let vm = vm.filter(|vm| vm.has_copyable());
        let Some((vm, server)) = vm.and_then(|vm| Some((vm, vm.server.as_ref()?))) else {
            return self.fail(&it, "the VM has no server in a state that permits a snapshot");
        };
        let is_at_rest =
            matches!(server.is, ServerState::On | ServerState::Off | ServerState::Other(_));
        if !is_at_rest || vm.action.as_ref().is_some_and(|action| action.sent.is_some()) {
            return self.look_again(it, Vec::new());
        }
        let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(self.now), ..it };
        let actions = vec![SnapshotAction::Request { server: server.id.clone() }];
        Decision { actions, ..self.look_again(asked, Vec::new()) }
    }

    /// Tries a failed snapshot again, after growing waiting times, as long as the end of a lease waits for it.
    fn again(&self, it: Snapshot, vm: Option<&Vm>) -> Planned {
        if it.why == SnapshotOrigin::Asked || vm.is_none() {
            return self.rest(it, None);
        }
        let due = it.failed_at.map_or(self.now, |at| self.rules.backoff.after(it.failures, at));
        if self.now < due {
            return self.rest(it, Some(due));
        }
        self.look_again(Snapshot { state: SnapshotState::Wanted, ..it }, Vec::new())
    }

    /// Writes the snapshot, and looks again at the next regular observation, or at `due` if that is earlier.
    fn rest(&self, it: Snapshot, due: Option<Timestamp>) -> Planned {
        let pause = self.rules.pauses.look_every;
        let pause = due.map_or(pause, |due| pause.min(time_left(due, self.now)));
        written(self.of, it, Vec::new(), Requeue::After(pause))
    }

    /// Writes the snapshot, and looks again soon, because the cloud is working.
    fn look_again(&self, it: Snapshot, events: Vec<VmEvent>) -> Planned {
        written(self.of, it, events, Requeue::After(self.rules.pauses.soon))
    }

    /// Writes the snapshot, and then deletes the images.
    fn delete(&self, it: Snapshot, events: Vec<VmEvent>, images: &[SnapshotImage]) -> Planned {
        let delete = |image: &SnapshotImage| SnapshotAction::DeleteImage(image.id.clone());
        let actions = images.iter().map(delete).collect();
        Decision { actions, ..written(self.of, it, events, Requeue::OnChange) }
    }
}

fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}
