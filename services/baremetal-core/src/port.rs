//! A network port of a node.

use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{NodeUuid, PortUuid};

/// A network port of a node: the address by which network boot knows the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its id.
    pub id: PortUuid,
    /// Counts the writes.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Option<Timestamp>,
    /// The node it is part of.
    pub node: NodeUuid,
    /// Its address; no two ports share one.
    pub address: MacAddress,
    /// Its logical name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Whether the machine may boot from it.
    pub pxe_enabled: bool,
    /// The switch port it is plugged into.
    pub local_link_connection: Map<String, Value>,
    /// The network it is plugged into.
    pub physical_network: Option<String>,
    /// The port group it is part of.
    pub portgroup: Option<Uuid>,
    /// Whether it is a SmartNIC.
    pub is_smartnic: bool,
    /// The operator's own notes.
    pub extra: Map<String, Value>,
}
