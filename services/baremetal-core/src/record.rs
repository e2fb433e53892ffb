//! Records beside the node: its history, its inventory, and machines and BMCs that nobody has enrolled.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use agent_protocol::InspectionData;
use hardware::MacAddress;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{HistoryUuid, Node, NodeUuid, State};

/// One entry of a node's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// The id of the entry; `None` until the entry is stored.
    pub id: Option<HistoryUuid>,
    pub node: NodeUuid,
    pub at: Timestamp,
    pub severity: Severity,
    /// The provision state before the event; empty if an imported entry names none.
    pub from: String,
    /// The provision state after the event; the type of the event in an entry that was imported.
    pub to: String,
    /// The provision state that the node was about to reach before the event; `None` if it rested.
    pub target: Option<String>,
    /// How long the node had been in the state before the event, in seconds; `None` if that is not known.
    pub seconds: Option<i64>,
    /// The event in words for people.
    pub event: String,
    /// The user who asked for the change, by Keystone id or by name; `None` if the service acted by itself or runs without authentication.
    pub user: Option<String>,
    /// The id of the project of the user's token; `None` without a project.
    pub project: Option<String>,
}

words::words! {
    /// The severity of a history entry, with its name in the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Severity {
        /// An expected event.
        Info = "INFO",
        /// An event that an operator has to look at.
        Error = "ERROR",
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
            target: before.leads_to().map(|state| state.to_string()),
            seconds: before.provision_updated_at.map(|since| at.duration_since(since).as_secs()),
            event,
            user: None,
            project: None,
        }
    }

    /// Returns the entry with the user who asked for the change, and the project of the user.
    pub fn by(self, user: Option<&str>, project: Option<&str>) -> Self {
        HistoryEntry { user: user.map(str::to_owned), project: project.map(str::to_owned), ..self }
    }

    /// The activity in which the event occurred: for a failure the work that failed, for other events the state after the event. An imported
    /// failure keeps a type that is no provision state, such as `monitoring`.
    pub fn activity(&self) -> &str {
        match (self.severity, &*self.from) {
            (Severity::Error, _) if self.to.parse::<State>().is_err() => &self.to,
            (Severity::Error, "") => &self.to,
            (Severity::Info, _) => &self.to,
            (Severity::Error, "clean wait") => "cleaning",
            (Severity::Error, "wait call-back") => "deploying",
            (Severity::Error, "inspecting" | "inspect wait") => "introspection",
            (Severity::Error, "rescuing" | "rescue wait" | "unrescuing") => "rescue",
            (Severity::Error, "service wait") => "servicing",
            (Severity::Error, state) => state,
        }
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

/// A machine or a BMC that was seen and that nobody has enrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    pub id: DiscoveryId,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// The report of a machine's agent, or the answer of a BMC; `None` unless discovery was allowed to boot the ramdisk.
    pub data: Option<Value>,
    /// The node that the discovery was accepted into.
    pub node: Option<NodeUuid>,
}

/// The key of a discovery's data under which the reason is why inspection rules did not accept the machine.
const REFUSED: &str = "refused";

/// The name of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub enum DiscoveryId {
    /// A machine that asked for a network boot, by the MAC address that the machine used for DHCP.
    Machine(MacAddress),
    /// A BMC that answered the crawler at this socket.
    Bmc(SocketAddr),
}

/// The text names no discovery.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is neither a MAC address nor the address and port of a BMC")]
pub struct InvalidDiscoveryId {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl FromStr for DiscoveryId {
    type Err = InvalidDiscoveryId;

    fn from_str(raw: &str) -> Result<Self, InvalidDiscoveryId> {
        let machine = raw.parse().ok().map(DiscoveryId::Machine);
        let found = machine.or_else(|| raw.parse().ok().map(DiscoveryId::Bmc));
        found.ok_or_else(|| InvalidDiscoveryId { raw: raw.chars().take(64).collect() })
    }
}

impl fmt::Display for DiscoveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiscoveryId::Machine(mac) => mac.fmt(f),
            DiscoveryId::Bmc(at) => at.fmt(f),
        }
    }
}

impl From<DiscoveryId> for String {
    fn from(id: DiscoveryId) -> String {
        id.to_string()
    }
}

impl Discovery {
    /// Returns the machine's MAC address; `None` for a BMC.
    pub fn mac(&self) -> Option<MacAddress> {
        match self.id {
            DiscoveryId::Machine(mac) => Some(mac),
            DiscoveryId::Bmc(_) => None,
        }
    }

    /// Returns why inspection rules did not accept the machine, as of its last report.
    pub fn refused(&self) -> Option<&str> {
        self.data.as_ref()?.get(REFUSED)?.as_str()
    }

    /// Returns the discovery with the reason why inspection rules did not accept the machine. The next report of the machine replaces the reason.
    pub fn with_refusal(&self, why: String) -> Discovery {
        let mut found = self.clone();
        if let Some(Value::Object(data)) = &mut found.data {
            data.insert(REFUSED.to_owned(), why.into());
        }
        found
    }

    /// Returns the report of the machine's agent.
    pub fn inspection(&self) -> Option<InspectionData> {
        let data = self.data.as_ref()?;
        let mut whole = data.get("plugin_data")?.as_object()?.clone();
        whole.insert("inventory".to_owned(), data.get("inventory")?.clone());
        serde_json::from_value(Value::Object(whole)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;

    #[test]
    fn an_entry_tells_how_long_the_node_was_in_its_state_and_what_failed() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let since = Some(Timestamp::UNIX_EPOCH);
        let before =
            Node { provision_state: State::CleanWait, provision_updated_at: since, ..node.clone() };
        let after = Node { provision_state: State::CleanFailed, ..node };
        let at = Timestamp::from_second(90).unwrap();
        let failed = HistoryEntry::failed(&before, &after, "it broke".to_owned(), at);
        assert_eq!((failed.activity(), failed.seconds), ("cleaning", Some(90)));
        let moved = HistoryEntry::changed(&before, &after, "it moved".to_owned(), at);
        assert_eq!(moved.activity(), "clean failed");
        let asked = moved.by(Some("ann"), Some("physics"));
        assert_eq!(asked.user.as_deref(), Some("ann"));
        assert_eq!(asked.project.as_deref(), Some("physics"));
        let never = Node { provision_updated_at: None, ..before };
        assert_eq!(HistoryEntry::changed(&never, &after, String::new(), at).seconds, None);
    }

    #[test]
    fn an_imported_failure_keeps_the_type_of_its_event() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let failed = HistoryEntry::failed(&node, &node, String::new(), Timestamp::UNIX_EPOCH);
        let activity = |from: &str, to: &str| {
            let imported =
                HistoryEntry { from: from.to_owned(), to: to.to_owned(), ..failed.clone() };
            imported.activity().to_owned()
        };
        assert_eq!(activity("active", "monitoring"), "monitoring");
        assert_eq!(activity("clean wait", "cleaning"), "cleaning");
        assert_eq!(activity("", "deploying"), "deploying");
    }

    #[test]
    fn the_name_of_a_discovery_tells_machines_and_bmcs_apart() {
        for (raw, want) in [
            ("52-54-00-00-00-0A", "52:54:00:00:00:0a"),
            ("10.0.0.7:443", "10.0.0.7:443"),
            ("[fd00::7]:623", "[fd00::7]:623"),
        ] {
            let id: DiscoveryId = raw.parse().unwrap();
            assert_eq!((id.to_string(), String::from(id)), (want.to_owned(), want.to_owned()));
        }
        for raw in ["", "zz", "10.0.0.7", "bmc.example:443"] {
            assert!(raw.parse::<DiscoveryId>().is_err(), "{raw}");
        }
    }

    #[test]
    fn a_discovery_tells_why_it_was_refused_beside_its_report() {
        let at = Timestamp::UNIX_EPOCH;
        let id = DiscoveryId::Machine(MacAddress::new([2, 0, 0, 0, 0, 1]));
        let data = Some(serde_json::json!({"inventory": {"cpu": {}}}));
        let found = Discovery { id, first_seen_at: at, last_seen_at: at, data, node: None };
        assert_eq!(found.refused(), None);
        let refused = found.with_refusal("not ours".to_owned());
        assert_eq!(refused.refused(), Some("not ours"));
        let data = serde_json::json!({"inventory": {"cpu": {}}, "refused": "not ours"});
        assert_eq!(refused.data, Some(data));
        let unknown = Discovery { data: None, ..found };
        assert_eq!(unknown.with_refusal("not ours".to_owned()), unknown);
    }

    #[test]
    fn a_severity_is_named_as_ironic_names_it() {
        assert_eq!([Severity::Info, Severity::Error].map(Severity::as_str), ["INFO", "ERROR"]);
        assert_eq!(Severity::find("ERROR"), Some(Severity::Error));
        assert_eq!(Severity::find("WARNING"), None);
    }
}
