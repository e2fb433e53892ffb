//! Nodes, their ports, sensors and history.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::shared::Lease;
use crate::with_json::WithJson;

/// A node. An answer lacks the fields that the query parameter `fields` leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Node {
    pub uuid: Option<String>,
    pub name: Option<String>,
    pub driver: Option<String>,
    pub provision_state: Option<String>,
    pub target_provision_state: Option<String>,
    pub power_state: Option<String>,
    pub target_power_state: Option<String>,
    pub provision_updated_at: Option<String>,
    pub last_error: Option<String>,
    pub maintenance: bool,
    pub maintenance_reason: Option<String>,
    pub fault: Option<String>,
    pub health: Option<String>,
    pub boot_mode: Option<String>,
    pub secure_boot: Option<bool>,
    pub resource_class: Option<String>,
    pub traits: Vec<String>,
    pub console_interface: Option<String>,
    pub console_enabled: bool,
    pub instance_uuid: Option<String>,
    pub allocation_uuid: Option<String>,
    pub lessee: Option<String>,
    pub driver_info: Map<String, Value>,
    pub instance_info: Map<String, Value>,
    pub properties: Map<String, Value>,
    pub extra: Map<String, Value>,
    pub raid_config: Map<String, Value>,
    pub target_raid_config: Map<String, Value>,
}

/// The network ports of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ports {
    pub ports: Vec<WithJson<Port>>,
}

/// A network port of a node. An answer lacks the fields that the query leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Port {
    pub uuid: Option<String>,
    pub address: Option<String>,
    pub local_link_connection: Map<String, Value>,
    pub extra: Map<String, Value>,
    pub internal_info: Map<String, Value>,
}

/// The inventory that the last inspection found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Inventory {
    /// The hardware as the machine's agent reported it, which no schema describes.
    pub inventory: Value,
    pub plugin_data: Value,
}

/// Whether an interface of a node has all settings that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Validation {
    pub result: bool,
    pub reason: Option<String>,
}

/// A VIF that is attached to a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Vif {
    pub id: String,
}

/// A virtual drive of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct VirtualDrive {
    pub inserted: bool,
    pub image: Option<String>,
}

/// The lessee of a node, and the lease.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NodeLease {
    pub lessee: Option<String>,
    pub lease: Option<Lease>,
}

/// The sensors of a machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sensors {
    pub sensors: Vec<WithJson<SensorReading>>,
}

/// The reading of a sensor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SensorReading {
    pub name: String,
    pub value: Option<f64>,
    pub unit: String,
    pub health: String,
}

/// The event log of a BMC, newest entries first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EventLog {
    pub event_log: Vec<EventLogEntry>,
}

/// An entry in the event log of a BMC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EventLogEntry {
    /// The time in seconds since 1970, if the BMC tells it.
    pub at: Option<i64>,
    pub message: String,
}

/// The history of a node, oldest events first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct History {
    pub history: Vec<HistoryEvent>,
}

/// An event in the history of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HistoryEvent {
    pub created_at: String,
    pub severity: String,
    pub event: String,
    pub event_type: Option<String>,
}

impl Node {
    /// The node's id; empty if the answer has none.
    pub fn id(&self) -> &str {
        self.uuid.as_deref().unwrap_or_default()
    }

    /// The node's name, or its id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.id())
    }

    /// The provision state; empty if the answer has none.
    pub fn state(&self) -> &str {
        self.provision_state.as_deref().unwrap_or_default()
    }

    /// The compute host that the node's owner wants it to be.
    pub fn hypervisor_hostname(&self) -> Option<&str> {
        self.instance_info.get("hypervisor_hostname")?.as_str()
    }
}
