//! Stores the results of inspections.

use agent_protocol::InspectionData;
use baremetal_core::{Node, Port, PortUuid, Problem, Reason, apply_bmc_inventory, apply_inventory};
use baremetal_store::StoreError;
use hardware::{Inventory, MacAddress};
use serde_json::Value;
use tracing::{info, warn};

use crate::context::TurnContext;
use crate::problem::ActionError;

impl TurnContext {
    /// Returns the node with the facts of the agent's inventory, which has arrived. New ports are stored immediately, which may be repeated
    /// without harm.
    pub(crate) async fn take_inventory(&self, node: &Node) -> Result<Node, ActionError> {
        let lost = || failed("the inventory cannot be read".to_owned());
        let Some(found) = self.store.find_inspected(node.id).await? else { return Err(lost()) };
        let mut whole = found.plugin_data.as_object().cloned().unwrap_or_default();
        whole.insert("inventory".to_owned(), found.inventory);
        let Ok(data) = serde_json::from_value::<InspectionData>(Value::Object(whole)) else {
            return Err(lost());
        };
        if let Some(error) = data.error.as_deref().filter(|error| !error.is_empty()) {
            let error: String = error.chars().filter(|c| !c.is_control()).take(1000).collect();
            return Err(failed(format!("the inspection by the agent failed: {error}")));
        }
        let (reported, macs) = apply_inventory(node, &data);
        self.add_ports(node, &macs).await?;
        Ok(reported)
    }

    /// Returns the node with the facts of the BMC's inventory. A node without ports gets the ports that the BMC knows, to boot from.
    pub(crate) async fn take_bmc_inventory(
        &self,
        node: &Node,
        inventory: &Inventory,
    ) -> Result<Node, ActionError> {
        let (reported, macs) = apply_bmc_inventory(node, inventory);
        if self.store.ports_of(node.id).await?.is_empty() {
            self.add_ports(node, &macs).await?;
        }
        let whole = serde_json::json!({ "bmc": inventory });
        info!(node.id = %node.id, nics = macs.len(), disks = inventory.disks.len(), "read the inventory of the BMC");
        if node.inspect_interface() == baremetal_core::InspectInterface::Redfish {
            let found = baremetal_core::InspectionReport {
                node: node.id,
                at: self.now(),
                inventory: agent_inventory(inventory),
                plugin_data: whole,
            };
            self.store.save_inspected(&found).await?;
        }
        Ok(reported)
    }

    /// Adds the ports that do not exist yet. An address that belongs to another node is skipped.
    async fn add_ports(&self, node: &Node, macs: &[MacAddress]) -> Result<(), ActionError> {
        for mac in macs {
            let port = Port::new(PortUuid::new_v4(), node.id, *mac, self.now());
            match self.store.insert_port(&port).await {
                Ok(()) => info!(node.id = %node.id, %mac, "node {} has a port {mac}", node.id),
                Err(StoreError::Duplicate { .. }) => {
                    let owner = self.store.find_port_by_address(*mac).await?.map(|port| port.node);
                    if owner.is_some_and(|owner| owner != node.id) {
                        warn!(node.id = %node.id, %mac, "port {mac} of node {} belongs to another node already", node.id);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn failed(cause: String) -> ActionError {
    Problem { reason: Reason::StepFailed, cause, transient: false }.into()
}

/// Converts a BMC's inventory into the form of an agent's inventory, which the API shows.
fn agent_inventory(inventory: &Inventory) -> Value {
    let found = agent_protocol::Inventory {
        interfaces: inventory.nics.iter().map(interface).collect(),
        cpu: agent_protocol::Cpu {
            model_name: inventory.processor.model.clone().unwrap_or_default(),
            count: inventory.processor.threads.unwrap_or(0),
            architecture: inventory.processor.architecture.clone().unwrap_or_default(),
            socket_count: inventory.processor.sockets,
            ..Default::default()
        },
        disks: inventory.disks.iter().map(disk).collect(),
        memory: agent_protocol::Memory {
            total: inventory.memory_mib.unwrap_or(0) << 20,
            physical_mb: inventory.memory_mib,
        },
        system_vendor: agent_protocol::SystemVendor {
            product_name: inventory.model.clone().unwrap_or_default(),
            serial_number: inventory.serial_number.clone().unwrap_or_default(),
            manufacturer: inventory.manufacturer.clone().unwrap_or_default(),
            ..Default::default()
        },
        boot: agent_protocol::Boot {
            current_boot_mode: inventory.boot_mode.map(|mode| mode.to_string()).unwrap_or_default(),
            pxe_interface: None,
        },
        ..Default::default()
    };
    serde_json::to_value(found).unwrap_or(Value::Null)
}

fn interface(nic: &hardware::Nic) -> agent_protocol::Interface {
    agent_protocol::Interface {
        name: nic.name.clone(),
        mac_address: Some(nic.mac.to_string()),
        has_carrier: nic.link_up.unwrap_or(false),
        speed_mbps: nic.speed_mbps,
        ..Default::default()
    }
}

fn disk(disk: &hardware::Disk) -> agent_protocol::Disk {
    agent_protocol::Disk {
        name: disk.name.clone(),
        model: disk.model.clone(),
        size: disk.size_bytes.unwrap_or(0),
        rotational: disk.rotational.unwrap_or(false),
        serial: disk.serial_number.clone(),
        ..Default::default()
    }
}
