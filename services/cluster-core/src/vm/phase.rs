//! The phase of a VM: its state in one word.

use ::lease::RequiredState;
use serde::Serialize;

use crate::{DesiredState, ServerState};

use super::{Vm, VmActionKind};

words::words! {
    /// The phase of a VM, with its name in the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum VmPhase {
        Building = "BUILDING",
        Active = "ACTIVE",
        Stopped = "STOPPED",
        Starting = "STARTING",
        Stopping = "STOPPING",
        Rebooting = "REBOOTING",
        Resizing = "RESIZING",
        /// Nova is doing something else to its server.
        Busy = "BUSY",
        /// Its lease ended: the VM is off or about to be, and is deleted unless the end is undone.
        Expired = "EXPIRED",
        /// The VM could not be created, or its server failed.
        Failed = "FAILED",
        /// Its server disappeared without clusterd deleting it.
        Lost = "LOST",
        Deleting = "DELETING",
    }
}

impl Vm {
    /// Whether the lease ended and was not extended since.
    pub fn is_expired(&self) -> bool {
        self.lease
            .as_ref()
            .is_some_and(|lease| lease.required_state() != RequiredState::AsRequested)
    }

    /// Computes the phase from the record.
    pub fn phase(&self) -> VmPhase {
        if self.desire == DesiredState::Gone {
            return VmPhase::Deleting;
        }
        if self.is_expired() {
            return VmPhase::Expired;
        }
        if self.built_at.is_none() {
            let is_final = self.problem.as_ref().is_some_and(|problem| problem.is_final);
            return if is_final { VmPhase::Failed } else { VmPhase::Building };
        }
        let Some(server) = &self.server else { return VmPhase::Lost };
        match (&server.is, self.action.as_ref().map(|action| &action.kind)) {
            (ServerState::Leaving, _) => VmPhase::Lost,
            (_, Some(VmActionKind::Start)) => VmPhase::Starting,
            (_, Some(VmActionKind::Stop)) => VmPhase::Stopping,
            (_, Some(VmActionKind::RebootSoft | VmActionKind::RebootHard)) => VmPhase::Rebooting,
            (_, Some(VmActionKind::Resize(_))) => VmPhase::Resizing,
            (ServerState::Failed(_), None) => VmPhase::Failed,
            (ServerState::On, None) => VmPhase::Active,
            (ServerState::Off, None) => VmPhase::Stopped,
            (
                ServerState::Building
                | ServerState::Resized
                | ServerState::Changing
                | ServerState::Other(_),
                None,
            ) => VmPhase::Busy,
        }
    }
}
