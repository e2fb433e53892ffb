//! What a machine is doing, in one word.

use std::fmt;

use ::lease::Wanted;
use serde::Serialize;

use crate::Desire;

use super::{ErrandKind, ServerIs, Vm};

/// What a machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VmPhase {
    /// It is being made.
    Building,
    /// It runs.
    Active,
    /// It is off.
    Stopped,
    /// It is being started.
    Starting,
    /// It is being shut down.
    Stopping,
    /// It is rebooting.
    Rebooting,
    /// It gets another size.
    Resizing,
    /// The cloud is doing something else to it.
    Busy,
    /// Its lease ended: it is off, or about to be, and is deleted unless that is undone.
    Expired,
    /// It could not be made, or its server failed.
    Failed,
    /// Its server is gone, and nobody here deleted it.
    Lost,
    /// It is being deleted.
    Deleting,
}

impl VmPhase {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            VmPhase::Building => "BUILDING",
            VmPhase::Active => "ACTIVE",
            VmPhase::Stopped => "STOPPED",
            VmPhase::Starting => "STARTING",
            VmPhase::Stopping => "STOPPING",
            VmPhase::Rebooting => "REBOOTING",
            VmPhase::Resizing => "RESIZING",
            VmPhase::Busy => "BUSY",
            VmPhase::Expired => "EXPIRED",
            VmPhase::Failed => "FAILED",
            VmPhase::Lost => "LOST",
            VmPhase::Deleting => "DELETING",
        }
    }
}

impl fmt::Display for VmPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Vm {
    /// Whether its lease ended and was not extended since.
    pub fn is_expired(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.wanted() != Wanted::AsAsked)
    }

    /// What it is doing.
    pub fn phase(&self) -> VmPhase {
        if self.desire == Desire::Gone {
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
        match (&server.is, self.errand.as_ref().map(|errand| &errand.kind)) {
            (ServerIs::Leaving, _) => VmPhase::Lost,
            (_, Some(ErrandKind::Start)) => VmPhase::Starting,
            (_, Some(ErrandKind::Stop)) => VmPhase::Stopping,
            (_, Some(ErrandKind::RebootSoft | ErrandKind::RebootHard)) => VmPhase::Rebooting,
            (_, Some(ErrandKind::Resize(_))) => VmPhase::Resizing,
            (ServerIs::Failed(_), None) => VmPhase::Failed,
            (ServerIs::On, None) => VmPhase::Active,
            (ServerIs::Off, None) => VmPhase::Stopped,
            (
                ServerIs::Building | ServerIs::Resized | ServerIs::Changing | ServerIs::Other(_),
                None,
            ) => VmPhase::Busy,
        }
    }
}
