//! The stages of a VM's lease: warning, switch-off, snapshot and deletion.

use ::lease::{Due, LeaseStage, RequiredState};

use crate::{DesiredState, LeaseNotice, Name, ServerState, Severity, SnapshotUuid};

use super::observation::VmObservation;
use super::{
    ActionOrigin, Snapshot, SnapshotOrigin, SnapshotState, Vm, VmAction, VmActionKind, VmEvent,
};

/// The VM while the stages of its lease are applied to it, with the events and notices to record.
pub(super) struct LeaseTurn<'a, 'l> {
    pub(super) vm: Vm,
    pub(super) look: &'l VmObservation<'a>,
    pub(super) events: Vec<VmEvent>,
    /// The notices about the stages that were taken.
    pub(super) notices: Vec<LeaseNotice>,
    /// A snapshot that is to be recorded and created.
    pub(super) copy: Option<Snapshot>,
}

/// The limit of stages in one turn; more than a lease has.
const MAX_STAGES: usize = 8;

impl LeaseTurn<'_, '_> {
    /// Takes every stage that is due, then switches the server off or on as the lease wants.
    pub(super) fn take_due_stages(&mut self) {
        for _ in 0..MAX_STAGES {
            let Some(lease) = self.vm.lease.clone() else { break };
            let Due::Now(step) = self.look.rules.schedule.due(&lease, self.look.now) else { break };
            if self.vm.desire == DesiredState::Gone || !self.take(&step) {
                break;
            }
            self.vm.lease = Some(lease.with_stage_taken(&step, self.look.now));
            if step == LeaseStage::Delete {
                self.vm =
                    Vm { updated_at: self.vm.updated_at, ..self.vm.to_be_deleted(self.look.now) };
            }
        }
        self.switch_power();
    }

    /// Takes one stage. Returns false while the stage must wait for the snapshot.
    fn take(&mut self, step: &LeaseStage) -> bool {
        let now = self.look.now;
        let (event, reason, happens_at, message) = match step {
            LeaseStage::Warn { ends_at } => (
                "lease.ends",
                "LeaseEndsSoon",
                Some(*ends_at),
                format!("the lease ends at {ends_at}: extend the lease to keep the VM"),
            ),
            LeaseStage::SwitchOff { deleted_at } => {
                self.vm.off_by_lease = self.is(&ServerState::On);
                self.drop_action();
                (
                    "lease.ended",
                    "LeaseEnded",
                    Some(*deleted_at),
                    format!(
                        "the lease ended: the VM is switched off, and deleted at {deleted_at}; extend the lease or undo \
                         its end to keep the VM"
                    ),
                )
            }
            LeaseStage::Snapshot => return self.has_copy(),
            LeaseStage::WarnOfDeletion { deleted_at } => (
                "lease.deletion_near",
                "DeletionSoon",
                Some(*deleted_at),
                format!(
                    "the VM is deleted at {deleted_at} because its lease ended: extend the lease to keep the VM"
                ),
            ),
            LeaseStage::Delete => (
                "lease.deleted",
                "LeaseOver",
                None,
                "the VM is deleted because its lease ended".to_owned(),
            ),
        };
        self.events.push(VmEvent::warning(&self.vm, reason, message.clone(), now));
        let severity = Severity::Warning;
        self.notices.push(LeaseNotice { reason, event, severity, message, happens_at });
        true
    }

    /// Cancels an action of the owner that was not sent to Nova yet.
    fn drop_action(&mut self) {
        let Some(action) = self.vm.action.take_if(|action| action.sent.is_none()) else { return };
        let message = format!("{} was not done: the lease ended", action.kind);
        self.events.push(VmEvent::warning(&self.vm, "ActionRefused", message, self.look.now));
    }

    /// Whether the snapshot of the VM exists, or none can be made. Records a new snapshot when there is none yet.
    fn has_copy(&mut self) -> bool {
        let now = self.look.now;
        // Without an observation it is unknown whether there is a server.
        let Some(server) = self.look.server() else { return false };
        if self.vm.server.is_none() && server.is_none() && self.vm.built_at.is_none() {
            return true;
        }
        if !self.vm.has_copyable() {
            let message = match self.vm.root_volume {
                Some(_) => "no snapshot is kept: the VM boots from a volume",
                None => "no snapshot is kept: the VM has no server in a state that permits one",
            };
            self.events.push(VmEvent::warning(&self.vm, "CopySkipped", message, now));
            return true;
        }
        let is_off = server.is_some_and(|it| it.is != ServerState::On && !it.is_busy);
        if self.vm.action.is_some() || !(is_off || self.vm.ending_failed_at.is_some()) {
            return false;
        }
        match self.look.copy.filter(|copy| Some(copy.id) == self.vm.copy) {
            Some(copy) if copy.state == SnapshotState::Active => return true,
            Some(copy) if copy.state != SnapshotState::Leaving => {}
            Some(_) | None => {
                let id = self.look.rules.new_copy;
                let copy = Snapshot::new(
                    id,
                    &self.vm,
                    copy_name(&self.vm, id),
                    SnapshotOrigin::LeaseEnded,
                    now,
                );
                (self.vm.copy, self.copy) = (Some(id), Some(copy));
            }
        }
        false
    }

    /// Switches the server off while the lease is over, and on again when the end was undone.
    fn switch_power(&mut self) {
        let now = self.look.now;
        let Some(Some(server)) = self.look.server() else { return };
        if self.vm.desire == DesiredState::Gone || self.vm.action.is_some() || server.is_busy {
            return;
        }
        let wanted = self
            .vm
            .lease
            .as_ref()
            .map_or(RequiredState::AsRequested, ::lease::Lease::required_state);
        match (wanted, &server.is) {
            (RequiredState::Off, ServerState::On) => {
                // A failed switch-off is reported once and tried again from time to time.
                let tried = self.vm.ending_failed_at;
                if tried.is_none_or(|at| self.look.rules.ends_again_after <= now.duration_since(at))
                {
                    let stop = VmAction::new(VmActionKind::Stop, ActionOrigin::Lease, now);
                    self.vm.action = Some(stop);
                }
            }
            (RequiredState::AsRequested, is) => {
                if self.vm.off_by_lease && *is == ServerState::Off {
                    let start = VmAction::new(VmActionKind::Start, ActionOrigin::Lease, now);
                    self.vm.action = Some(start);
                }
                self.vm.off_by_lease = false;
                self.vm.copy = None;
                self.vm.ending_failed_at = None;
            }
            (RequiredState::Off | RequiredState::Deleted, _) => {}
        }
    }

    fn is(&self, is: &ServerState) -> bool {
        self.vm.server.as_ref().is_some_and(|server| server.is == *is)
    }
}

/// Returns the name of the snapshot that is kept.
fn copy_name(vm: &Vm, id: SnapshotUuid) -> Name {
    let id = id.to_string();
    let name = format!("{}-kept-{}", vm.name.label(60), id.get(..8).unwrap_or(&id));
    name.parse().unwrap_or_else(|_| vm.name.clone())
}
