//! What is written down beside the node: its history, its inventory, machines nobody enrolled.

use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::Value;

use crate::{HistoryUuid, Node, NodeUuid};

/// One line of a node's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// Its id; `None` until it is stored.
    pub id: Option<HistoryUuid>,
    /// Which node.
    pub node: NodeUuid,
    /// When.
    pub at: Timestamp,
    /// How bad it is.
    pub severity: Severity,
    /// The state before.
    pub from: String,
    /// The state after: the Bare Metal API's `event_type`.
    pub to: String,
    /// What happened, for people.
    pub event: String,
    /// Who asked for it, by Keystone's id of the user or by name; `None` where the service did it by itself, or asks nobody for a name.
    pub user: Option<String>,
}

/// How bad an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Info,
    /// Someone has to look.
    Error,
}

impl Severity {
    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Error => "ERROR",
        }
    }
}

impl HistoryEntry {
    /// The node went on to another state.
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

    /// The same, asked for by this user.
    pub fn by(self, user: Option<&str>) -> Self {
        HistoryEntry { user: user.map(str::to_owned), ..self }
    }

    /// The node's work was given up.
    pub fn failed(before: &Node, after: &Node, event: String, at: Timestamp) -> Self {
        HistoryEntry {
            severity: Severity::Error,
            ..HistoryEntry::changed(before, after, event, at)
        }
    }
}

/// What an inspection found: the documents as the agent sent them.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Which node.
    pub node: NodeUuid,
    /// When.
    pub at: Timestamp,
    /// The `inventory` part.
    pub inventory: Value,
    /// Everything else.
    pub plugin_data: Value,
}

/// A machine that asked for a boot and that nobody enrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// The address it asked with.
    pub mac: MacAddress,
    /// When it first asked.
    pub first_seen_at: Timestamp,
    /// When it last asked.
    pub last_seen_at: Timestamp,
    /// What its agent found, where it was allowed to boot one.
    pub data: Option<Value>,
}
