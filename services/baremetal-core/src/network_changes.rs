//! The networks of the service, and the ports in Neutron that the conductor still has to change for a node.

use serde::{Deserialize, Serialize};

words::words! {
    /// A network to which the service connects a machine while a ramdisk runs on the machine, with its name in the configuration.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ServiceNetwork {
        Provisioning = "provisioning",
        Cleaning = "cleaning",
        Rescuing = "rescuing",
        /// A node without this network is inspected in the networks that its switch ports have.
        Inspection = "inspection",
        Servicing = "servicing",
    }
}

impl ServiceNetwork {
    /// Returns the key of `driver_info` with the name or id of the network, such as `cleaning_network`.
    pub fn key(self) -> String {
        format!("{}_network", self.as_str())
    }
}

/// The ports in Neutron that the conductor still has to change for a node. They are recorded before the first call to Neutron.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkChanges {
    /// The network of the service in which the machine has ports, or gets them now. No port stays when the work is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<ServiceNetwork>,
    /// Whether the ports of the node's VIFs are to be bound to the machine, which is in use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binds: bool,
    /// The VIFs that were detached and whose ports are to be released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<String>,
}

impl NetworkChanges {
    /// Returns whether nothing is left to change.
    pub fn are_done(&self) -> bool {
        *self == NetworkChanges::default()
    }
}
