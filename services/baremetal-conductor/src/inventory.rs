//! Stores the results of inspections.

use std::panic::resume_unwind;

use agent_protocol::InspectionData;
use baremetal_core::{
    ActionOutcome, BmcIdentity, InspectedMachine, InspectionChanges, InspectionReport,
    InspectionRule, LogLevel, MAX_INSPECTION_RULES, Node, NodeIdent, Port, PortUuid, Problem,
    Reason, RuleChanges, RuleLog, Stored, apply_bmc_inventory, apply_inspection_rules,
    apply_inventory,
};
use baremetal_store::StoreError;
use hardware::{Inventory, MacAddress};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tracing::{debug, error, info, warn};

use crate::context::TurnContext;
use crate::problem::{ActionError, Result};

impl TurnContext {
    /// Returns the node with the facts of the agent's inventory, which has arrived, and the changes of the inspection rules. New ports are
    /// stored immediately, which may be repeated without harm.
    pub(crate) async fn take_inventory(&self, node: &Node) -> Result<ActionOutcome> {
        let lost = || failed("the inventory cannot be read".to_owned());
        let Some(found) = self.store.find_inspected(node.id).await? else { return Err(lost()) };
        let mut whole = found.plugin_data.as_object().cloned().unwrap_or_default();
        whole.insert("inventory".to_owned(), found.inventory.clone());
        let Ok(data) = serde_json::from_value::<InspectionData>(Value::Object(whole)) else {
            return Err(lost());
        };
        if let Some(error) = data.error.as_deref().filter(|error| !error.is_empty()) {
            let error: String = error.chars().filter(|c| !c.is_control()).take(1000).collect();
            return Err(failed(format!("the inspection by the agent failed: {error}")));
        }
        let (reported, macs) = apply_inventory(node, &data);
        self.add_ports(node, &macs).await?;
        self.apply_rules(node, reported, found).await
    }

    /// Returns the node with the facts of the BMC's inventory. A node without ports gets the ports that the BMC knows, to boot from. If no
    /// agent is asked afterwards, the inspection rules are applied.
    pub(crate) async fn take_bmc_inventory(
        &self,
        node: &Node,
        inventory: &Inventory,
    ) -> Result<ActionOutcome> {
        let (reported, macs) = apply_bmc_inventory(node, inventory);
        if self.store.ports_of(node.id).await?.is_empty() {
            self.add_ports(node, &macs).await?;
        }
        let whole = serde_json::json!({ "bmc": inventory });
        info!(node.id = %node.id, nics = macs.len(), disks = inventory.disks.len(), "read the inventory of the BMC");
        if !node.inspect_interface().is_redfish() {
            return Ok(ActionOutcome::TaskDone(Box::new(reported)));
        }
        let found = InspectionReport {
            node: node.id,
            at: self.now(),
            inventory: agent_inventory(inventory),
            plugin_data: whole,
        };
        self.store.save_inspected(&found).await?;
        self.apply_rules(node, reported, found).await
    }

    /// Applies the inspection rules to the node `reported`, which is `before` with the facts of its inventory.
    async fn apply_rules(
        &self,
        before: &Node,
        reported: Node,
        found: InspectionReport,
    ) -> Result<ActionOutcome> {
        let ports = self.store.ports_of(before.id).await?;
        let RuleChanges { node, mut ports, plugin_data, logs: _ } =
            self.run_rules(before, reported, ports, &found).await?;
        ports.iter_mut().for_each(|port| port.updated_at = Some(self.now()));
        let report = plugin_data.map(|plugin_data| InspectionReport { plugin_data, ..found });
        let changes = InspectionChanges { ports, report };
        Ok(ActionOutcome::Inspected(Box::new((node, changes))))
    }

    /// Runs the inspection rules for the node `reported` with these ports. Returns their changes, of which nothing is stored yet.
    pub(crate) async fn run_rules(
        &self,
        before: &Node,
        reported: Node,
        ports: Vec<Port>,
        found: &InspectionReport,
    ) -> Result<RuleChanges> {
        let rules = self.inspection_rules().await?;
        let (stored, report) = (before.clone(), found.clone());
        let groups = self.settings.groups.clone();
        // Many regular expressions take seconds, in which a thread of the runtime could serve nobody else.
        let applying = spawn_blocking(move || {
            let (inventory, plugin_data) = (&report.inventory, &report.plugin_data);
            let (before, node) = (&stored, reported);
            let groups = &groups;
            let machine = InspectedMachine { before, node, ports, inventory, plugin_data, groups };
            apply_inspection_rules(&rules, machine)
        });
        let applied = applying.await.unwrap_or_else(|panic| resume_unwind(panic.into_panic()));
        let changes = applied.map_err(|why| failed(why.to_string()))?;
        let node = &changes.node;
        self.check_name(before, node).await?;
        self.check_bmc(before, node).await?;
        for RuleLog { level, text } in &changes.logs {
            match level {
                LogLevel::Debug => debug!(node.id = %node.id, "{text}"),
                LogLevel::Info => info!(node.id = %node.id, "{text}"),
                LogLevel::Warning => warn!(node.id = %node.id, "{text}"),
                LogLevel::Error => error!(node.id = %node.id, "{text}"),
            }
        }
        Ok(changes)
    }

    /// Returns all inspection rules, with their secrets unsealed.
    async fn inspection_rules(&self) -> Result<Vec<Stored<InspectionRule>>> {
        let sealed = self.store.first_resources(MAX_INSPECTION_RULES).await?;
        let open = |rule: &Stored<InspectionRule>| {
            self.store.secrets().with_rule(rule).map_err(|why| {
                failed(format!("the inspection rule {} cannot be unsealed: {why}", rule.id))
            })
        };
        sealed.iter().map(open).collect()
    }

    /// Fails if a rule gave the node the name of another node, which could not be written.
    async fn check_name(&self, before: &Node, after: &Node) -> Result<()> {
        let Some(name) = after.name.clone().filter(|_| before.name != after.name) else {
            return Ok(());
        };
        let text = format!("name: an inspection rule set the name {name}, which another node has");
        match self.store.find_node(&NodeIdent::Name(name)).await? {
            Some(other) if other.id != after.id => Err(failed(text)),
            Some(_) | None => Ok(()),
        }
    }

    /// Fails if a rule gave the node the BMC of another node, which could not be written.
    async fn check_bmc(&self, before: &Node, after: &Node) -> Result<()> {
        if BmcIdentity::of(before) == BmcIdentity::of(after) {
            return Ok(());
        }
        match self.store.find_shared_bmc(after).await? {
            Some(other) => Err(failed(format!(
                "driver_info: an inspection rule set the BMC of node {other}; a BMC belongs to one node"
            ))),
            None => Ok(()),
        }
    }

    /// Adds the ports that do not exist yet, up to the most ports of a node. An address that belongs to another node is skipped.
    async fn add_ports(&self, node: &Node, macs: &[MacAddress]) -> Result<()> {
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
                Err(StoreError::LimitReached { most, .. }) => {
                    warn!(node.id = %node.id, "node {} has {most} ports: further addresses of its inventory become no ports", node.id);
                    break;
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
