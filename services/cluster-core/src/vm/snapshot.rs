//! Snapshots of machines: what is known of each, and what is done for it next.
//!
//! A snapshot is its owner's, and outlives its machine. It counts as made when the cloud says that its image can be used.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Backoff, Desire, Name, Severity, SnapshotUuid, VmUuid};

use super::{ServerIs, Told, Vm, VmEvent, VmImage};

/// A snapshot as it was asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotUuid,
    /// Counts its changes.
    pub version: i64,
    /// Whose it is.
    pub project: String,
    /// Who of it asked for it, or for the machine.
    pub user: String,
    /// The cloud's project that it is in, as its machine is.
    pub cloud_project: Option<String>,
    /// Of which machine, which may be gone.
    pub vm: VmUuid,
    /// What that was called.
    pub vm_name: Name,
    /// Its name, of which there is one in a project.
    pub name: Name,
    /// Why there is one.
    pub why: SnapshotWhy,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// The size of the disk that it is of, in GiB.
    pub size_gib: u64,
    /// How the system on it is told who may log in.
    pub told: Told,
    /// How far it is.
    pub state: SnapshotState,
    /// The id of its image in the cloud, once known.
    pub image: Option<String>,
    /// When the cloud was asked for it last.
    pub asked_at: Option<Timestamp>,
    /// How often it was asked and did not answer, since it last did. Who is killed before asking has not asked.
    pub times: u32,
    /// How often it failed in a row.
    pub failures: u32,
    /// When it failed last.
    pub failed_at: Option<Timestamp>,
    /// Why.
    pub reason: Option<String>,
    /// When it was made.
    pub made_at: Option<Timestamp>,
    /// When it is deleted; never, where there is none.
    pub keep_until: Option<Timestamp>,
}

/// Why there is a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotWhy {
    /// Somebody asked for it.
    Asked,
    /// Its machine's lease ended.
    LeaseEnded,
}

/// How far a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotState {
    /// The cloud is to be asked for it.
    Wanted,
    /// The cloud was asked.
    Making,
    /// It can be used.
    Active,
    /// The cloud failed at it.
    Failed,
    /// It is to be deleted.
    Leaving,
}

impl SnapshotState {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            SnapshotState::Wanted => "wanted",
            SnapshotState::Making => "making",
            SnapshotState::Active => "active",
            SnapshotState::Failed => "failed",
            SnapshotState::Leaving => "leaving",
        }
    }
}

/// An image of a snapshot's name that the cloud has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSeen {
    /// Its id.
    pub id: String,
    /// Whether it can be used: not yet, where there is none; why not, where it never will.
    pub usable: Option<Result<(), String>>,
}

/// What is next for a snapshot. What is said of it is written first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotNext {
    /// Nothing before that time; nothing by itself, where there is none.
    Rest(Option<Timestamp>),
    /// The cloud is at work.
    Look,
    /// The cloud is to be asked for it.
    Ask,
    /// These images are to be deleted.
    Delete(Vec<String>),
    /// Nothing of it is left: it is to be forgotten.
    Forget,
}

/// By what a snapshot's turn is decided.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRules {
    /// How long that of a lease that ended is kept once its machine is gone.
    pub keep: SignedDuration,
    /// How long is waited after a failure.
    pub backoff: Backoff,
    /// Within what time a request that nobody answered may be carried out.
    pub lands_within: SignedDuration,
}

/// So often a request is repeated that nobody ever took up.
const MOST_TIMES: u32 = 3;

impl Snapshot {
    /// One that was just asked for.
    pub fn new(id: SnapshotUuid, of: &Vm, name: Name, why: SnapshotWhy, now: Timestamp) -> Self {
        Snapshot {
            id,
            version: 1,
            project: of.project.clone(),
            user: of.user.clone(),
            cloud_project: of.cloud_project.clone(),
            vm: of.id,
            vm_name: of.name.clone(),
            name,
            why,
            created_at: now,
            size_gib: of.disk_gib(),
            told: of.image.told,
            state: SnapshotState::Wanted,
            image: None,
            asked_at: None,
            times: 0,
            failures: 0,
            failed_at: None,
            reason: None,
            made_at: None,
            keep_until: None,
        }
    }

    /// What its image is called in the cloud.
    pub fn image_name(&self) -> String {
        format!("{}-{}", self.name.label(40), self.id)
    }

    /// It, to be deleted.
    pub fn leaving(&self) -> Snapshot {
        Snapshot { state: SnapshotState::Leaving, ..self.clone() }
    }

    /// It, once the cloud was asked for it and nobody knows whether it was heard.
    pub fn unanswered(&self) -> Snapshot {
        Snapshot { times: self.times.saturating_add(1), ..self.clone() }
    }

    /// Whether it could not be made, and is not tried again.
    pub fn is_failed_for_good(&self) -> bool {
        self.state == SnapshotState::Failed && self.why == SnapshotWhy::Asked
    }

    /// What a machine boots of it, if it can be used.
    pub fn bootable(&self) -> Option<VmImage> {
        let id = self.image.clone().filter(|_| self.state == SnapshotState::Active)?;
        Some(VmImage {
            id,
            name: self.name.to_string(),
            told: self.told,
            min_disk_gib: self.size_gib,
            min_ram_mib: 0,
        })
    }

    /// It, once the cloud failed at it or refused it, and what to say of that.
    pub fn failed(&self, why: &str, now: Timestamp) -> (Snapshot, Vec<VmEvent>) {
        let failed = Snapshot {
            state: SnapshotState::Failed,
            failures: self.failures.saturating_add(1),
            failed_at: Some(now),
            reason: Some(why.to_owned()),
            times: 0,
            ..self.clone()
        };
        let message = match self.why {
            SnapshotWhy::Asked => format!("snapshot {} was not made: {why}", self.name),
            SnapshotWhy::LeaseEnded => format!(
                "the copy {} that is kept of it was not made, and is tried again: {why}",
                self.name
            ),
        };
        let told = self.why == SnapshotWhy::Asked || self.failures == 0;
        let event = VmEvent::new(self.vm, Severity::Error, "SnapshotFailed", message, now);
        (failed, if told { vec![event] } else { Vec::new() })
    }
}

/// What is next for `of`, given the images of its name and its machine, if that is there.
pub fn snapshot_turn(
    of: &Snapshot,
    (images, vm): (&[SnapshotSeen], Option<&Vm>),
    rules: &SnapshotRules,
    now: Timestamp,
) -> (Snapshot, Vec<VmEvent>, SnapshotNext) {
    let rest = |it: Snapshot, next| (it, Vec::new(), next);
    let mut it = of.clone();
    let lands_by = it.asked_at.map(|at| after(at, rules.lands_within)).filter(|by| *by > now);
    if it.state == SnapshotState::Leaving {
        if !images.is_empty() {
            return rest(it, SnapshotNext::Delete(ids(images)));
        }
        return match lands_by {
            Some(by) => rest(it, SnapshotNext::Rest(Some(by))),
            None => rest(it, SnapshotNext::Forget),
        };
    }
    let is_there = vm.filter(|vm| vm.desire == Desire::Exist);
    if it.why == SnapshotWhy::LeaseEnded {
        if is_there.is_some_and(|vm| vm.copy != Some(it.id)) {
            // The end was undone.
            return rest(it.leaving(), SnapshotNext::Look);
        }
        if is_there.is_none() && it.state == SnapshotState::Active && it.keep_until.is_none() {
            it.keep_until = Some(after(now, rules.keep));
        }
        if vm.is_none() && it.state == SnapshotState::Failed {
            return rest(it.leaving(), SnapshotNext::Look);
        }
    }
    if it.keep_until.is_some_and(|until| until <= now) {
        return rest(it.leaving(), SnapshotNext::Look);
    }
    let known = it.image.as_deref().and_then(|id| images.iter().find(|image| image.id == id));
    let first = images.iter().min_by(|one, other| one.id.cmp(&other.id));
    let image = if it.image.is_some() { known } else { first };
    let others: Vec<String> = images
        .iter()
        .filter(|other| image.is_some_and(|image| image.id != other.id))
        .map(|other| other.id.clone())
        .collect();
    if it.state != SnapshotState::Failed && !others.is_empty() {
        it.image = image.map(|image| image.id.clone());
        return rest(it, SnapshotNext::Delete(others));
    }
    match (it.state, image) {
        (SnapshotState::Leaving, _) => rest(it, SnapshotNext::Look),
        (SnapshotState::Wanted | SnapshotState::Making, Some(image)) => {
            (it.image, it.state) = (Some(image.id.clone()), SnapshotState::Making);
            match &image.usable {
                None => rest(it, SnapshotNext::Look),
                Some(Ok(())) => made(it, now),
                Some(Err(why)) => {
                    let (it, events) = it.failed(why, now);
                    (it, events, SnapshotNext::Delete(ids(images)))
                }
            }
        }
        (SnapshotState::Wanted, None) => wanted(it, is_there, now),
        (SnapshotState::Making, None) if it.image.is_some() => {
            let (failed, events) = it.failed("the cloud does not have it any more", now);
            (Snapshot { image: None, ..failed }, events, SnapshotNext::Look)
        }
        (SnapshotState::Making, None) => match lands_by {
            Some(by) => rest(it, SnapshotNext::Rest(Some(by))),
            None if it.times < MOST_TIMES => {
                it.state = SnapshotState::Wanted;
                wanted(it, is_there, now)
            }
            None => {
                let (failed, events) = it.failed("the cloud never took it up", now);
                (failed, events, SnapshotNext::Look)
            }
        },
        (SnapshotState::Active, Some(image)) if !matches!(image.usable, Some(Err(_))) => {
            let until = it.keep_until;
            rest(it, SnapshotNext::Rest(until))
        }
        (SnapshotState::Active, _) => {
            let (failed, events) = it.failed("its image is gone", now);
            (Snapshot { image: None, ..failed }, events, SnapshotNext::Look)
        }
        (SnapshotState::Failed, Some(_)) => {
            it.image = None;
            rest(it, SnapshotNext::Delete(ids(images)))
        }
        (SnapshotState::Failed, None) => {
            it.image = None;
            again(it, is_there, rules, now)
        }
    }
}

fn made(it: Snapshot, now: Timestamp) -> (Snapshot, Vec<VmEvent>, SnapshotNext) {
    let message = format!("snapshot {} was made", it.name);
    let event = VmEvent::new(it.vm, Severity::Info, "SnapshotMade", message, now);
    let made = Snapshot {
        state: SnapshotState::Active,
        made_at: Some(now),
        reason: None,
        failures: 0,
        failed_at: None,
        ..it
    };
    (made, vec![event], SnapshotNext::Look)
}

/// It is asked for, where there is a machine that is at rest.
fn wanted(it: Snapshot, vm: Option<&Vm>, now: Timestamp) -> (Snapshot, Vec<VmEvent>, SnapshotNext) {
    let Some(vm) = vm.filter(|vm| vm.has_copyable()) else {
        let (failed, events) = it.failed("there is no machine of which one could be made", now);
        return (failed, events, SnapshotNext::Look);
    };
    let is_at_rest = vm.server.as_ref().is_some_and(|server| {
        matches!(server.is, ServerIs::On | ServerIs::Off | ServerIs::Other(_))
    });
    if !is_at_rest || vm.errand.as_ref().is_some_and(|errand| errand.sent.is_some()) {
        return (it, Vec::new(), SnapshotNext::Look);
    }
    let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(now), ..it };
    (asked, Vec::new(), SnapshotNext::Ask)
}

/// What failed is tried again, more and more seldom, as long as a lease's end waits for it.
fn again(
    it: Snapshot,
    vm: Option<&Vm>,
    rules: &SnapshotRules,
    now: Timestamp,
) -> (Snapshot, Vec<VmEvent>, SnapshotNext) {
    if it.why == SnapshotWhy::Asked || vm.is_none() {
        return (it, Vec::new(), SnapshotNext::Rest(None));
    }
    let due = it.failed_at.map_or(now, |at| rules.backoff.after(it.failures, at));
    if now < due {
        return (it, Vec::new(), SnapshotNext::Rest(Some(due)));
    }
    (Snapshot { state: SnapshotState::Wanted, ..it }, Vec::new(), SnapshotNext::Look)
}

fn ids(images: &[SnapshotSeen]) -> Vec<String> {
    images.iter().map(|image| image.id.clone()).collect()
}

fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}
