//! The record of a node's network port.

use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{NodeUuid, PortUuid};

/// A network port of a node. DHCP and network boot recognize the machine by the port's MAC address.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    pub id: PortUuid,
    /// Counts the writes. A write that names an older version is refused.
    pub version: i64,
    pub created_at: Timestamp,
    /// When the port was last written; `None` before the first change.
    pub updated_at: Option<Timestamp>,
    pub node: NodeUuid,
    /// The MAC address, which is unique among all ports.
    pub address: MacAddress,
    pub name: Option<String>,
    pub description: Option<String>,
    /// Whether the machine may boot from this port.
    pub pxe_enabled: bool,
    /// The switch port that the port is connected to.
    pub local_link_connection: Map<String, Value>,
    pub physical_network: Option<String>,
    pub portgroup: Option<Uuid>,
    pub is_smartnic: bool,
    /// Whether a port group may be made of the port when an instance asks for one. Nothing makes such groups here.
    pub available_for_dynamic_portgroup: bool,
    /// The maker of the network card.
    pub vendor: Option<String>,
    /// A word by which the operator divides ports, such as `storage`.
    pub category: Option<String>,
    pub vif: Option<String>,
    /// Free-form notes of the operator, ignored by the service.
    pub extra: Map<String, Value>,
}

impl Port {
    /// Makes a port from which the machine may boot.
    pub fn new(id: PortUuid, node: NodeUuid, address: MacAddress, now: Timestamp) -> Self {
        Port {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            node,
            address,
            name: None,
            description: None,
            pxe_enabled: true,
            local_link_connection: Map::new(),
            physical_network: None,
            portgroup: None,
            is_smartnic: false,
            available_for_dynamic_portgroup: true,
            vendor: None,
            category: None,
            vif: None,
            extra: Map::new(),
        }
    }
}
