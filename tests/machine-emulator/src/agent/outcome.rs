//! The progress and the outcome of a command.

use serde::Serialize;
use serde_json::Value;

use crate::event::{BootSource, Stage};
use crate::machine::Machine;

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Progress {
    pub(super) done_bytes: u64,
    pub(super) total_bytes: Option<u64>,
}

/// The result of a successful command.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Value,
    pub(super) ending: Option<Ending>,
}

/// How a command ends the agent, and the machine with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    PowerOff,
    Reboot,
    /// The machine goes on as a rescue system, whose password has this hash.
    Rescue(String),
}

/// The error of a command, in the form of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) code: u16,
    pub(super) message: String,
    pub(super) details: String,
}

impl Failure {
    pub(super) fn new(kind: &'static str, details: impl Into<String>) -> Failure {
        let details = details.into();
        let message = details.split('.').next().unwrap_or_default().to_owned();
        Failure { kind, code: 500, message, details }
    }
}

impl Ending {
    pub(super) fn take_effect(self, machine: &Machine, source: BootSource) {
        match self {
            Ending::PowerOff => machine.chassis().guest_power_off(),
            Ending::Reboot => machine.chassis().guest_reboot(),
            Ending::Rescue(hash) => machine.now(Stage::Rescue(source, hash)),
        }
    }
}
