//! Events of VMs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{EventUuid, Severity, VmUuid};

use super::Vm;

/// Something that happened to a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmEvent {
    /// `None` until the store writes the event and gives it an id.
    pub id: Option<EventUuid>,
    pub vm: VmUuid,
    pub at: Timestamp,
    pub severity: Severity,
    /// A word for programs: `LeaseEndsSoon`, `Built`.
    pub reason: String,
    /// The same for people.
    pub message: String,
}

impl VmEvent {
    /// Makes an event about something usual.
    pub fn info(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Info, reason, message.into(), at)
    }

    /// Makes an event about something unexpected that does not stop work.
    pub fn warning(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Warning, reason, message.into(), at)
    }

    /// Makes an event about something that a person must act on.
    pub fn error(of: &Vm, reason: &str, message: impl Into<String>, at: Timestamp) -> Self {
        VmEvent::new(of.id, Severity::Error, reason, message.into(), at)
    }

    /// Makes an event of the VM with this id.
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
