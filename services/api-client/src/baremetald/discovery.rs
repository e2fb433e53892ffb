//! Machines and BMCs that were seen and are not enrolled.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The discovered machines and BMCs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Discoveries {
    pub discoveries: Vec<Discovery>,
}

/// A discovered machine or BMC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Discovery {
    /// The MAC address of a machine, or the address and port of a BMC.
    pub id: String,
    /// The MAC address of a machine; `None` for a BMC.
    pub mac: Option<String>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// The addresses of the machine's BMC.
    pub bmc_addresses: Vec<String>,
    pub neighbours: Vec<Neighbour>,
    /// Why inspection rules did not accept the machine.
    pub refused: Option<String>,
    /// The report of the machine's agent, or the answer of the BMC, which no schema describes.
    pub data: Value,
}

/// The switch port that a network card of a discovered machine is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Neighbour {
    pub interface: String,
    pub switch_id: Option<String>,
    pub port_id: Option<String>,
    pub switch_name: Option<String>,
}

/// The node that a discovery was accepted into.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AcceptedDiscovery {
    pub uuid: String,
    pub name: Option<String>,
    /// `accepted`, or `present` if the discovery was accepted before.
    pub result: String,
}

impl Discovery {
    /// A text in the inventory that the machine's agent reported.
    pub fn reported(&self, pointer: &str) -> Option<&str> {
        self.data.get("inventory")?.pointer(pointer)?.as_str()
    }

    /// The maker and the model of the machine or of its BMC; empty if they are not known.
    pub fn model(&self) -> String {
        let vendor = |field: &str| self.reported(&format!("/system_vendor/{field}"));
        let redfish = |field: &str| self.data.pointer(&format!("/bmc/redfish/{field}"))?.as_str();
        let words = match self.mac {
            Some(_) => [vendor("manufacturer"), vendor("product_name")],
            None => [redfish("vendor"), redfish("product")],
        };
        words.into_iter().flatten().collect::<Vec<_>>().join(" ").trim().to_owned()
    }
}

impl Neighbour {
    /// The name of the switch, else its id, and the name of its port.
    pub fn label(&self) -> String {
        let switch = self.switch_name.as_deref().or(self.switch_id.as_deref()).unwrap_or("?");
        format!("{switch} {}", self.port_id.as_deref().unwrap_or("?"))
    }
}
