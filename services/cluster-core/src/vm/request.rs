//! Checks requests for an action or a snapshot against the state of a VM.

use jiff::Timestamp;

use crate::{DesiredState, ServerState};

use super::{ActionOrigin, FlavorTooSmall, Vm, VmAction, VmActionKind, VmPhase};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmRefusal {
    #[error("the VM is being deleted")]
    Deleting,
    #[error("the lease ended: extend the lease first")]
    Expired,
    #[error("{0} is in progress: wait until it is done")]
    Busy(VmActionKind),
    #[error("the VM is {0}")]
    State(VmPhase),
    #[error("the VM boots from a volume, and snapshots of volumes are not supported")]
    Volume,
    #[error(transparent)]
    TooSmall(#[from] FlavorTooSmall),
    #[error(
        "the disk of {now} GiB cannot shrink, and flavor {flavor} has {asked} GiB: choose a flavor with a larger disk"
    )]
    Shrinks {
        /// In GiB.
        now: u64,
        /// In GiB.
        asked: u64,
        flavor: String,
    },
}

impl Vm {
    /// Returns the VM with a new action of its owner.
    ///
    /// # Errors
    ///
    /// When the state of the VM does not allow the action, or another action is in progress.
    pub fn with_action(&self, kind: VmActionKind, now: Timestamp) -> Result<Vm, VmRefusal> {
        if self.desire == DesiredState::Gone {
            return Err(VmRefusal::Deleting);
        }
        if self.is_expired() {
            return Err(VmRefusal::Expired);
        }
        if let Some(under_way) = &self.action {
            return Err(VmRefusal::Busy(under_way.kind.clone()));
        }
        let is = self.server.as_ref().filter(|_| self.built_at.is_some()).map(|server| &server.is);
        let may = match (&kind, is) {
            (_, None | Some(ServerState::Leaving)) => false,
            (VmActionKind::RebootHard, Some(_)) => true,
            (_, Some(ServerState::Failed(_))) => matches!(kind, VmActionKind::Stop),
            (_, Some(_)) => true,
        };
        if !may {
            return Err(VmRefusal::State(self.phase()));
        }
        if let VmActionKind::Resize(flavor) = &kind {
            self.image.check(flavor, self.root_volume)?;
            let (now, asked) = (self.flavor.size.disk_gib, flavor.size.disk_gib);
            if self.root_volume.is_none() && asked < now {
                return Err(VmRefusal::Shrinks { now, asked, flavor: flavor.name.clone() });
            }
        }
        let action = Some(VmAction::new(kind, ActionOrigin::Owner, now));
        Ok(Vm { action, updated_at: Some(now), ..self.clone() })
    }

    /// Returns the VM, to be deleted.
    pub fn to_be_deleted(&self, now: Timestamp) -> Vm {
        Vm { desire: DesiredState::Gone, action: None, updated_at: Some(now), ..self.clone() }
    }

    /// Checks whether a snapshot can be made now.
    ///
    /// # Errors
    ///
    /// When the state of the VM does not allow a snapshot.
    pub fn check_snapshot(&self) -> Result<(), VmRefusal> {
        match self.phase() {
            VmPhase::Deleting => Err(VmRefusal::Deleting),
            _ if self.root_volume.is_some() => Err(VmRefusal::Volume),
            VmPhase::Active | VmPhase::Stopped | VmPhase::Busy | VmPhase::Expired
                if self.has_copyable() =>
            {
                Ok(())
            }
            VmPhase::Active
            | VmPhase::Stopped
            | VmPhase::Busy
            | VmPhase::Expired
            | VmPhase::Building
            | VmPhase::Starting
            | VmPhase::Stopping
            | VmPhase::Rebooting
            | VmPhase::Resizing
            | VmPhase::Failed
            | VmPhase::Lost => Err(VmRefusal::State(self.phase())),
        }
    }

    /// Whether there is a server of which a snapshot can be made.
    pub(super) fn has_copyable(&self) -> bool {
        // An image of a server that boots from a volume only refers to a snapshot in Cinder, for which the volume would have to stay.
        if self.root_volume.is_some() {
            return false;
        }
        let is = self.server.as_ref().filter(|_| self.built_at.is_some()).map(|server| &server.is);
        match is {
            None | Some(ServerState::Failed(_) | ServerState::Leaving | ServerState::Building) => {
                false
            }
            Some(
                ServerState::On
                | ServerState::Off
                | ServerState::Resized
                | ServerState::Changing
                | ServerState::Other(_),
            ) => true,
        }
    }
}
