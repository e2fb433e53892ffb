//! Records beside the node: its history, its inventory, and machines that nobody has enrolled.

use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::Value;

use crate::{HistoryUuid, Node, NodeUuid};

/// One entry of a node's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// The id of the entry; `None` until the entry is stored.
    pub id: Option<HistoryUuid>,
    pub node: NodeUuid,
    pub at: Timestamp,
    pub severity: Severity,
    /// The provision state before the event.
    pub from: String,
    /// The provision state after the event, which the Bare Metal API shows as `event_type`.
    pub to: String,
    /// The event in words for people.
    pub event: String,
    /// The user who asked for the change, by Keystone id or by name; `None` if the service acted by itself or runs without authentication.
    pub user: Option<String>,
}

/// The severity of a history entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// An expected event.
    Info,
    /// An event that an operator has to look at.
    Error,
}

impl Severity {
    /// Returns the name of the severity in the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Error => "ERROR",
        }
    }
}

impl HistoryEntry {
    /// Makes the entry for a node that changed to another state.
    pub fn changed(before: &Node, after: &Node, event: String, at: Timestamp) -> Self {
        HistoryEntry {
            id: None,
            node: after.id,
            at,
            severity: Severity::Info,
            from: before.provision_state.to_string(),
            to: after.provision_state.to_string(),
            event,
            user: None,
        }
    }

    /// Returns the entry with the user who asked for the change.
    pub fn by(self, user: Option<&str>) -> Self {
        HistoryEntry { user: user.map(str::to_owned), ..self }
    }

    /// Makes the entry for work that failed.
    pub fn failed(before: &Node, after: &Node, event: String, at: Timestamp) -> Self {
        HistoryEntry {
            severity: Severity::Error,
            ..HistoryEntry::changed(before, after, event, at)
        }
    }
}

/// The result of an inspection: the documents as the agent sent them.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectionReport {
    pub node: NodeUuid,
    pub at: Timestamp,
    /// The `inventory` part of the agent's report.
    pub inventory: Value,
    /// All other parts of the agent's report.
    pub plugin_data: Value,
}

/// A machine that asked for a network boot and that nobody has enrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// The MAC address that the machine used for DHCP.
    pub mac: MacAddress,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// The agent's report; `None` unless discovery was allowed to boot the ramdisk.
    pub data: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_is_named_as_ironic_names_it() {
        assert_eq!([Severity::Info, Severity::Error].map(Severity::as_str), ["INFO", "ERROR"]);
    }
}
