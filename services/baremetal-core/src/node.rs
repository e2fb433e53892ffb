//! A node: one machine, what its operator says of it and what the conductor knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hardware::{BootMode, PowerChange, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::secret::Shown;
use crate::{
    AllocationUuid, BootInterface, Driver, Failure, Hypervisor, InspectInterface, Interface,
    Leaving, Lending, NodeName, NodeUuid, State, Work,
};

/// One machine.
///
/// The API writes the first half, the conductor the second; whoever writes names the `version` it has read.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// Its id, for ever.
    pub id: NodeUuid,
    /// Counts the writes; a write that names an older one is refused.
    pub version: i64,
    /// When it was enrolled.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Option<Timestamp>,

    /// Its logical name.
    pub name: Option<NodeName>,
    /// Free text.
    pub description: Option<String>,
    /// What its machine is driven by.
    pub driver: Driver,
    /// How to reach its BMC. Holds passwords: never shown as it is.
    pub driver_info: Map<String, Value>,
    /// Interfaces that were asked for; the others are the driver's defaults.
    pub interfaces: BTreeMap<Interface, String>,
    /// What the machine is: `cpus`, `memory_mb`, `local_gb`, `cpu_arch`, `capabilities`, `root_device`.
    pub properties: Map<String, Value>,
    /// The operator's own notes.
    pub extra: Map<String, Value>,
    /// What is to be installed: `image_source`, `image_os_hash_algo`, `image_os_hash_value`, …
    pub instance_info: Map<String, Value>,
    /// The instance that uses the node.
    pub instance_uuid: Option<Uuid>,
    /// The name of that instance.
    pub instance_name: Option<String>,
    /// The allocation that reserves it; `instance_uuid` is the same then.
    pub allocation: Option<AllocationUuid>,
    /// What kind of machine it is, for scheduling.
    pub resource_class: Option<String>,
    /// What it is capable of, for scheduling.
    pub traits: BTreeSet<String>,
    /// Which conductors look after it.
    pub conductor_group: String,
    /// The project that owns it.
    pub owner: Option<String>,
    /// The project that uses it.
    pub lessee: Option<String>,
    /// Until when it does; without it, until its owner says otherwise.
    pub lending: Option<Lending>,
    /// A key by which clients divide nodes among themselves.
    pub shard: Option<String>,
    /// The node this one is a part of.
    pub parent_node: Option<NodeUuid>,
    /// The chassis it stands in.
    pub chassis: Option<Uuid>,
    /// Whether it is cleaned on its way to `available`; `None` leaves that to the service.
    pub automated_clean: Option<bool>,
    /// Whether it must not be taken out of use, and why.
    pub protected: Option<String>,
    /// Whether it must not come into use again, and why.
    pub retired: Option<String>,
    /// Whether it must never be powered off.
    pub disable_power_off: bool,
    /// Whether an operator works on it.
    pub maintenance: Option<Maintenance>,
    /// Whether its machine's serial console may be looked at.
    pub console_enabled: bool,
    /// Where it stands.
    pub place: Option<Place>,
    /// The hypervisor that its machine is, or is to become.
    pub hypervisor: Option<Hypervisor>,
    /// A request that waits until its compute host is drained.
    pub leaving: Option<Leaving>,

    /// Where it is in its life.
    pub provision_state: State,
    /// Where its work leads.
    pub target_provision_state: Option<State>,
    /// When the provision state last changed.
    pub provision_updated_at: Option<Timestamp>,
    /// Whether its machine is on; `None` until that was seen.
    pub power_state: Option<PowerState>,
    /// A change of power that was asked for and has not happened yet.
    pub power_request: Option<PowerRequest>,
    /// The work under way; `Some` exactly while `provision_state.is_busy()`.
    pub work: Option<Work>,
    /// Why its last work ended badly; cleared by the next.
    pub failure: Option<Failure>,
    /// The mode its firmware boots in, where known.
    pub boot_mode: Option<BootMode>,
    /// When the last inspection was begun.
    pub inspection_started_at: Option<Timestamp>,
    /// When the last inspection ended well.
    pub inspection_finished_at: Option<Timestamp>,
}

/// An operator works on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// In the operator's words.
    pub reason: Option<String>,
}

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The rack's name.
    pub rack: String,
    /// Which place in it: bring-up goes in this order.
    pub position: u32,
    /// A group of machines within the rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the machine is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A change of power that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerRequest {
    /// What remains to be done, the next last: a restart is `[On, ForceOff]`, so that a crash doubles nothing.
    pub remaining: Vec<PowerChange>,
    /// When the BMC was last asked for the next of them, written down before it is asked.
    pub asked_at: Option<Timestamp>,
    /// When it is given up.
    pub deadline: Timestamp,
}

impl PowerRequest {
    /// The steps to `change`.
    pub fn new(change: PowerChange, deadline: Timestamp) -> Self {
        let remaining = match change {
            PowerChange::ForceRestart => vec![PowerChange::On, PowerChange::ForceOff],
            PowerChange::SoftRestart => vec![PowerChange::On, PowerChange::SoftOff],
            PowerChange::On | PowerChange::ForceOff | PowerChange::SoftOff => vec![change],
        };
        PowerRequest { remaining, asked_at: None, deadline }
    }

    /// The state the machine will be in.
    pub fn leads_to(&self) -> Option<PowerState> {
        self.remaining.first().map(|last| last.leads_to())
    }
}

impl fmt::Debug for Node {
    /// All of it but the values of secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("created_at", &self.created_at)
            .field("updated_at", &self.updated_at)
            .field("name", &self.name)
            .field("description", &self.description)
            .field("driver", &self.driver)
            .field("driver_info", &Shown(&self.driver_info))
            .field("interfaces", &self.interfaces)
            .field("properties", &self.properties)
            .field("extra", &self.extra)
            .field("instance_info", &Shown(&self.instance_info))
            .field("instance_uuid", &self.instance_uuid)
            .field("instance_name", &self.instance_name)
            .field("allocation", &self.allocation)
            .field("resource_class", &self.resource_class)
            .field("traits", &self.traits)
            .field("conductor_group", &self.conductor_group)
            .field("owner", &self.owner)
            .field("lessee", &self.lessee)
            .field("shard", &self.shard)
            .field("parent_node", &self.parent_node)
            .field("chassis", &self.chassis)
            .field("automated_clean", &self.automated_clean)
            .field("protected", &self.protected)
            .field("retired", &self.retired)
            .field("disable_power_off", &self.disable_power_off)
            .field("maintenance", &self.maintenance)
            .field("console_enabled", &self.console_enabled)
            .field("place", &self.place)
            .field("hypervisor", &self.hypervisor)
            .field("leaving", &self.leaving)
            .field("provision_state", &self.provision_state)
            .field("target_provision_state", &self.target_provision_state)
            .field("provision_updated_at", &self.provision_updated_at)
            .field("power_state", &self.power_state)
            .field("power_request", &self.power_request)
            .field("work", &self.work)
            .field("lending", &self.lending)
            .field("failure", &self.failure)
            .field("boot_mode", &self.boot_mode)
            .field("inspection_started_at", &self.inspection_started_at)
            .field("inspection_finished_at", &self.inspection_finished_at)
            .finish()
    }
}

impl Node {
    /// A node that was just enrolled, with nothing said of it.
    pub fn new(id: NodeUuid, driver: Driver, now: Timestamp) -> Self {
        Node {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            name: None,
            description: None,
            driver,
            driver_info: Map::new(),
            interfaces: BTreeMap::new(),
            properties: Map::new(),
            extra: Map::new(),
            instance_info: Map::new(),
            instance_uuid: None,
            instance_name: None,
            allocation: None,
            resource_class: None,
            traits: BTreeSet::new(),
            conductor_group: String::new(),
            owner: None,
            lessee: None,
            lending: None,
            shard: None,
            parent_node: None,
            chassis: None,
            automated_clean: None,
            protected: None,
            retired: None,
            disable_power_off: false,
            maintenance: None,
            console_enabled: false,
            place: None,
            hypervisor: None,
            leaving: None,
            provision_state: State::Enroll,
            target_provision_state: None,
            provision_updated_at: None,
            power_state: None,
            power_request: None,
            work: None,
            failure: None,
            boot_mode: None,
            inspection_started_at: None,
            inspection_finished_at: None,
        }
    }

    /// The implementation of `interface` this node uses.
    pub fn interface(&self, interface: Interface) -> &str {
        self.interfaces.get(&interface).map_or(self.driver.default(interface), String::as_str)
    }

    /// Whether the node has this interface: an implementation that is named `no-` refuses whatever is asked of it.
    pub fn has(&self, interface: Interface) -> bool {
        !self.interface(interface).starts_with("no-")
    }

    /// How the ramdisk gets onto its machine.
    pub fn boot_interface(&self) -> BootInterface {
        match self.interface(Interface::Boot) {
            "ipxe" => BootInterface::Ipxe,
            "http-ipxe" => BootInterface::HttpIpxe,
            "redfish-virtual-media" => BootInterface::VirtualMedia,
            _ => BootInterface::Fake,
        }
    }

    /// How its hardware is looked at.
    pub fn inspect_interface(&self) -> InspectInterface {
        match self.interface(Interface::Inspect) {
            "agent" => InspectInterface::Agent,
            "redfish" => InspectInterface::Redfish,
            _ => InspectInterface::None,
        }
    }

    /// What a person calls it: its name, or its id.
    pub fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.id.to_string(), NodeName::to_string)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_secret_is_printed() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let info = json!({"redfish_password": "hunter2", "a": {"token": "hunter2"}, "b": [{"secret": "hunter2"}], "u": "ann"});
        node.driver_info = info.as_object().unwrap().clone();
        node.instance_info = json!({"configdrive": "hunter2"}).as_object().unwrap().clone();
        let printed = format!("{node:?} {node:#?}");
        assert!(!printed.contains("hunter2") && printed.contains("ann"), "{printed}");
    }
}
