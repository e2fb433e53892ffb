//! A requested change of power, in steps.

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A requested change of power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerRequest {
    /// The steps that remain, the next one last. A restart is `[On, ForceOff]`: each finished step is removed, so a crash repeats no step.
    pub remaining: Vec<PowerChange>,
    /// When the BMC was last asked for the next step; recorded before the BMC is asked.
    pub asked_at: Option<Timestamp>,
    /// When the conductor gives up the request.
    pub deadline: Timestamp,
}

impl PowerRequest {
    /// Splits `change` into its steps, so that a restart is an off and an on.
    pub fn new(change: PowerChange, deadline: Timestamp) -> Self {
        let remaining = match change {
            PowerChange::ForceRestart => vec![PowerChange::On, PowerChange::ForceOff],
            PowerChange::SoftRestart => vec![PowerChange::On, PowerChange::SoftOff],
            PowerChange::On | PowerChange::ForceOff | PowerChange::SoftOff => vec![change],
        };
        PowerRequest { remaining, asked_at: None, deadline }
    }

    /// Returns the power state of the machine after the last step.
    pub fn leads_to(&self) -> Option<PowerState> {
        self.remaining.first().map(|last| last.leads_to())
    }
}
