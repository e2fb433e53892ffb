//! Snapshots of VMs: the record of each, and the decision about the next step.
//!
//! A snapshot belongs to its owner and outlives its VM. A snapshot counts as made when Glance says that its image is active.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Backoff, DesiredState, Name, ServerState, Severity, SnapshotUuid, VmUuid};

use super::{UserDataFormat, Vm, VmEvent, VmImage};

/// A requested snapshot, with its progress and result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: SnapshotUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    /// The project that owns the snapshot.
    pub project: String,
    /// The user who requested the snapshot, or the VM when its lease ended.
    pub user: String,
    /// The id of the cloud's project in which the image is: the one of the VM.
    pub cloud_project: Option<String>,
    /// The VM may be deleted already.
    pub vm: VmUuid,
    pub vm_name: Name,
    /// Unique within the project.
    pub name: Name,
    pub why: SnapshotOrigin,
    pub created_at: Timestamp,
    /// The size of the VM's disk, in GiB.
    pub size_gib: u64,
    /// The format of user-data that the system on the snapshot reads.
    pub told: UserDataFormat,
    pub state: SnapshotState,
    /// The id of the image in the cloud, once known.
    pub image: Option<String>,
    /// When the image was last requested from Nova.
    pub asked_at: Option<Timestamp>,
    /// How many requests in a row got no answer. A crash before the request is sent does not count.
    pub times: u32,
    /// How often the snapshot failed in a row.
    pub failures: u32,
    pub failed_at: Option<Timestamp>,
    /// Why it last failed.
    pub reason: Option<String>,
    pub made_at: Option<Timestamp>,
    /// When the snapshot is deleted; `None`: never.
    pub keep_until: Option<Timestamp>,
}

/// The origin of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotOrigin {
    /// A request through the API.
    Asked,
    /// The end of the VM's lease.
    LeaseEnded,
}

/// The state of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotState {
    /// Nova is to be asked for the image.
    Wanted,
    /// Nova was asked for the image.
    Making,
    /// The image can be used.
    Active,
    Failed,
    /// The image is to be deleted.
    Leaving,
}

impl SnapshotState {
    /// Returns the name of the state in the API and the database.
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

/// An image in the cloud that has the name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotImage {
    /// The id of the image.
    pub id: String,
    /// `Some(Ok)`: the image can be used. `None`: not yet. `Some(Err)`: it never will be, for this reason.
    pub usable: Option<Result<(), String>>,
}

/// The next step of a snapshot, taken after the record and the events are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotStep {
    /// Wait until this time; `None`: until somebody changes something.
    Rest(Option<Timestamp>),
    /// Observe again: the cloud is working.
    Look,
    /// Request the image from Nova.
    Ask,
    /// Delete these images.
    Delete(Vec<String>),
    /// Delete the record: no image is left.
    Forget,
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
}

/// How often a request that gets no answer is sent.
const MOST_TIMES: u32 = 3;

impl Snapshot {
    /// Makes a new snapshot of `of`.
    pub fn new(id: SnapshotUuid, of: &Vm, name: Name, why: SnapshotOrigin, now: Timestamp) -> Self {
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

    /// Returns the name of the image in the cloud. The id in it makes it unique.
    pub fn image_name(&self) -> String {
        format!("{}-{}", self.name.label(40), self.id)
    }

    /// Returns the snapshot, to be deleted.
    pub fn leaving(&self) -> Snapshot {
        Snapshot { state: SnapshotState::Leaving, ..self.clone() }
    }

    /// Returns the snapshot after a request that got no answer.
    pub fn unanswered(&self) -> Snapshot {
        Snapshot { times: self.times.saturating_add(1), ..self.clone() }
    }

    /// Whether the snapshot failed and is not tried again.
    pub fn is_failed_for_good(&self) -> bool {
        self.state == SnapshotState::Failed && self.why == SnapshotOrigin::Asked
    }

    /// Returns the image that a VM boots from the snapshot; `None` when the image cannot be used.
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

    /// Returns the snapshot after the cloud refused or failed it, with the events to record.
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
            SnapshotOrigin::Asked => format!("snapshot {} failed: {why}", self.name),
            SnapshotOrigin::LeaseEnded => {
                format!("the snapshot {} to keep failed, and is tried again: {why}", self.name)
            }
        };
        let told = self.why == SnapshotOrigin::Asked || self.failures == 0;
        let event = VmEvent::new(self.vm, Severity::Error, "SnapshotFailed", message, now);
        (failed, if told { vec![event] } else { Vec::new() })
    }
}

/// Decides the next step of `of`, given the images with its name, and its VM when that still exists.
pub fn snapshot_turn(
    of: &Snapshot,
    (images, vm): (&[SnapshotImage], Option<&Vm>),
    rules: &SnapshotRules,
    now: Timestamp,
) -> (Snapshot, Vec<VmEvent>, SnapshotStep) {
    let rest = |it: Snapshot, next| (it, Vec::new(), next);
    let mut it = of.clone();
    let lands_by = it.asked_at.map(|at| after(at, rules.lands_within)).filter(|by| *by > now);
    if it.state == SnapshotState::Leaving {
        if !images.is_empty() {
            return rest(it, SnapshotStep::Delete(ids(images)));
        }
        return match lands_by {
            Some(by) => rest(it, SnapshotStep::Rest(Some(by))),
            None => rest(it, SnapshotStep::Forget),
        };
    }
    let is_there = vm.filter(|vm| vm.desire == DesiredState::Exist);
    if it.why == SnapshotOrigin::LeaseEnded {
        if is_there.is_some_and(|vm| vm.copy != Some(it.id)) {
            // The end of the lease was undone, so the snapshot is no longer needed.
            return rest(it.leaving(), SnapshotStep::Look);
        }
        if is_there.is_none() && it.state == SnapshotState::Active && it.keep_until.is_none() {
            it.keep_until = Some(after(now, rules.keep));
        }
        if vm.is_none() && it.state == SnapshotState::Failed {
            return rest(it.leaving(), SnapshotStep::Look);
        }
    }
    if it.keep_until.is_some_and(|until| until <= now) {
        return rest(it.leaving(), SnapshotStep::Look);
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
        return rest(it, SnapshotStep::Delete(others));
    }
    match (it.state, image) {
        (SnapshotState::Leaving, _) => rest(it, SnapshotStep::Look),
        (SnapshotState::Wanted | SnapshotState::Making, Some(image)) => {
            (it.image, it.state) = (Some(image.id.clone()), SnapshotState::Making);
            match &image.usable {
                None => rest(it, SnapshotStep::Look),
                Some(Ok(())) => made(it, now),
                Some(Err(why)) => {
                    let (it, events) = it.failed(why, now);
                    (it, events, SnapshotStep::Delete(ids(images)))
                }
            }
        }
        (SnapshotState::Wanted, None) => wanted(it, is_there, now),
        (SnapshotState::Making, None) if it.image.is_some() => {
            let (failed, events) = it.failed("the cloud no longer has its image", now);
            (Snapshot { image: None, ..failed }, events, SnapshotStep::Look)
        }
        (SnapshotState::Making, None) => match lands_by {
            Some(by) => rest(it, SnapshotStep::Rest(Some(by))),
            None if it.times < MOST_TIMES => {
                it.state = SnapshotState::Wanted;
                wanted(it, is_there, now)
            }
            None => {
                let (failed, events) = it.failed("Nova never started it", now);
                (failed, events, SnapshotStep::Look)
            }
        },
        (SnapshotState::Active, Some(image)) if !matches!(image.usable, Some(Err(_))) => {
            let until = it.keep_until;
            rest(it, SnapshotStep::Rest(until))
        }
        (SnapshotState::Active, _) => {
            let (failed, events) = it.failed("its image was deleted in the cloud", now);
            (Snapshot { image: None, ..failed }, events, SnapshotStep::Look)
        }
        (SnapshotState::Failed, Some(_)) => {
            it.image = None;
            rest(it, SnapshotStep::Delete(ids(images)))
        }
        (SnapshotState::Failed, None) => {
            it.image = None;
            again(it, is_there, rules, now)
        }
    }
}

fn made(it: Snapshot, now: Timestamp) -> (Snapshot, Vec<VmEvent>, SnapshotStep) {
    let message = format!("snapshot {} is ready", it.name);
    let event = VmEvent::new(it.vm, Severity::Info, "SnapshotMade", message, now);
    let made = Snapshot {
        state: SnapshotState::Active,
        made_at: Some(now),
        reason: None,
        failures: 0,
        failed_at: None,
        ..it
    };
    (made, vec![event], SnapshotStep::Look)
}

/// Requests the image, if the VM's server is in a state that allows it.
fn wanted(it: Snapshot, vm: Option<&Vm>, now: Timestamp) -> (Snapshot, Vec<VmEvent>, SnapshotStep) {
    let Some(vm) = vm.filter(|vm| vm.has_copyable()) else {
        let (failed, events) =
            it.failed("the VM has no server in a state that permits a snapshot", now);
        return (failed, events, SnapshotStep::Look);
    };
    let is_at_rest = vm.server.as_ref().is_some_and(|server| {
        matches!(server.is, ServerState::On | ServerState::Off | ServerState::Other(_))
    });
    if !is_at_rest || vm.errand.as_ref().is_some_and(|errand| errand.sent.is_some()) {
        return (it, Vec::new(), SnapshotStep::Look);
    }
    let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(now), ..it };
    (asked, Vec::new(), SnapshotStep::Ask)
}

/// Tries a failed snapshot again, after growing waiting times, as long as the end of a lease waits for it.
fn again(
    it: Snapshot,
    vm: Option<&Vm>,
    rules: &SnapshotRules,
    now: Timestamp,
) -> (Snapshot, Vec<VmEvent>, SnapshotStep) {
    if it.why == SnapshotOrigin::Asked || vm.is_none() {
        return (it, Vec::new(), SnapshotStep::Rest(None));
    }
    let due = it.failed_at.map_or(now, |at| rules.backoff.after(it.failures, at));
    if now < due {
        return (it, Vec::new(), SnapshotStep::Rest(Some(due)));
    }
    (Snapshot { state: SnapshotState::Wanted, ..it }, Vec::new(), SnapshotStep::Look)
}

fn ids(images: &[SnapshotImage]) -> Vec<String> {
    images.iter().map(|image| image.id.clone()).collect()
}

fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}
