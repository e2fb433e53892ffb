//! What happened to a machine.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{EventUuid, Severity, VmUuid};

use super::Vm;

/// Something that happened to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmEvent {
    /// Its id; given when it is written.
    pub id: Option<EventUuid>,
    /// To which machine.
    pub vm: VmUuid,
    /// When.
    pub at: Timestamp,
    /// How bad it is.
    pub severity: Severity,
    /// One word: `LeaseEndsSoon`, `Built`.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl VmEvent {
    /// As it should be.
    pub fn info(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Info, reason, message.into(), at)
    }

    /// Odd, and borne.
    pub fn warning(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Warning, reason, message.into(), at)
    }

    /// Somebody has to do something.
    pub fn error(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Error, reason, message.into(), at)
    }

    /// An event of the machine of that id.
    pub fn new(
        vm: VmUuid,
        severity: Severity,
        reason: &str,
        message: String,
        at: Timestamp,
    ) -> Self {
        VmEvent { id: None, vm, at, severity, reason: reason.to_owned(), message }
    }
}
