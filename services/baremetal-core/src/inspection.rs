//! Copies the result of an inspection into a node's record.

use agent_protocol::InspectionData;
use hardware::{BootMode, Inventory, MacAddress};
use serde_json::{Map, Value};

use crate::wanted_boot::declared_word;
use crate::{InspectInterface, Node};

/// One GiB, in bytes.
const GIB: u64 = 1 << 30;

/// Returns the node with the facts that the agent reported, and the MAC addresses that become ports.
///
/// The interface that the ramdisk booted from becomes the only port. If the agent does not name that interface, every interface with a link
/// becomes a port.
pub fn apply_inventory(node: &Node, data: &InspectionData) -> (Node, Vec<MacAddress>) {
    let mut changed = node.clone();
    let inventory = &data.inventory;
    set(&mut changed.properties, "cpus", inventory.cpu.count.into());
    set_text(&mut changed.properties, "cpu_arch", &inventory.cpu.architecture);
    let memory_mb = inventory.memory.physical_mb.unwrap_or(inventory.memory.total >> 20);
    set(&mut changed.properties, "memory_mb", memory_mb);
    let root_disk = data.root_disk.as_ref().map_or(0, |disk| disk.size / GIB);
    set(&mut changed.properties, "local_gb", root_disk);
    changed.boot_mode = match &*inventory.boot.current_boot_mode {
        "uefi" => Some(BootMode::Uefi),
        "bios" => Some(BootMode::Bios),
        _ => node.boot_mode,
    };
    declare_boot_mode(&mut changed);

    let booted = data.boot_interface.as_deref().or(inventory.boot.pxe_interface.as_deref());
    // pxelinux puts the ARP hardware type before the address: `01-52-54-…`.
    let booted = booted.map(|raw| if raw.len() == 20 { raw.get(3..).unwrap_or(raw) } else { raw });
    let booted: Option<MacAddress> = booted.and_then(|raw| raw.parse().ok());
    let linked = inventory.interfaces.iter().filter(|interface| interface.has_carrier);
    let linked = linked.filter_map(|interface| interface.mac_address.as_deref()?.parse().ok());
    let ports = match booted {
        Some(mac) => vec![mac],
        None => linked.collect(),
    };
    (changed, ports.into_iter().filter(|mac| !mac.is_multicast()).collect())
}

/// Returns the node with the facts that the BMC reported, and the MAC addresses of its network interfaces.
///
/// A BMC does not know which interface reaches the provisioning network, so the caller uses these addresses only until the agent has
/// reported.
pub fn apply_bmc_inventory(node: &Node, inventory: &Inventory) -> (Node, Vec<MacAddress>) {
    let mut changed = node.clone();
    set(&mut changed.properties, "cpus", inventory.processor.threads.unwrap_or(0).into());
    set_text(
        &mut changed.properties,
        "cpu_arch",
        inventory.processor.architecture.as_deref().unwrap_or(""),
    );
    set(&mut changed.properties, "memory_mb", inventory.memory_mib.unwrap_or(0));
    let smallest = inventory.disks.iter().filter_map(|disk| disk.size_bytes).min();
    set(&mut changed.properties, "local_gb", smallest.unwrap_or(0) / GIB);
    set_text(&mut changed.properties, "vendor", inventory.manufacturer.as_deref().unwrap_or(""));
    changed.boot_mode = inventory.boot_mode.or(node.boot_mode);
    // The agent, which the machine boots, knows the mode better.
    if node.inspect_interface() != InspectInterface::Agent {
        declare_boot_mode(&mut changed);
    }
    (changed, inventory.nics.iter().map(|nic| nic.mac).filter(|mac| !mac.is_multicast()).collect())
}

/// Sets a property unless the value is unknown (zero), so that an unknown value never replaces a known one.
fn set(properties: &mut Map<String, Value>, key: &str, value: u64) {
    if value > 0 {
        properties.insert(key.to_owned(), value.into());
    }
}

fn set_text(properties: &mut Map<String, Value>, key: &str, value: &str) {
    if !value.is_empty() {
        properties.insert(key.to_owned(), value.into());
    }
}

/// Declares the boot mode of the machine in `properties.capabilities`, where schedulers look for `boot_mode:uefi`. A mode that is declared
/// there already is the operator's choice for installations, and stays (ironic, `drivers/modules/redfish/inspect.py`).
fn declare_boot_mode(node: &mut Node) {
    if let (Some(mode), None) = (node.boot_mode, declared_word(node)) {
        set_capability(node, "boot_mode", mode.as_str());
    }
}

/// Sets a capability in `properties.capabilities`: `name:value,name:value`.
pub(crate) fn set_capability(node: &mut Node, name: &str, value: &str) {
    let before = node.properties.get("capabilities").and_then(Value::as_str).unwrap_or("");
    let is_other =
        |word: &&str| !word.is_empty() && word.split_once(':').is_none_or(|(it, _)| it != name);
    let others = before.split(',').filter(is_other).map(str::to_owned);
    let all: Vec<String> = others.chain([format!("{name}:{value}")]).collect();
    node.properties.insert("capabilities".to_owned(), all.join(",").into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid};

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
        node.properties.insert("capabilities".to_owned(), "gpu:true".into());
        node.properties.insert("memory_mb".to_owned(), 512.into());
        node
    }

    #[test]
    fn an_inventory_sets_the_properties_and_the_port_that_booted() {
        let data = serde_json::from_value(json!({
            "inventory": {
                "interfaces": [
                    {"name": "eth0", "mac_address": "52:54:00:00:00:01", "has_carrier": true},
                    {"name": "eth1", "mac_address": "52:54:00:00:00:02", "has_carrier": true}],
                "cpu": {"count": 4, "architecture": "x86_64"},
                "memory": {"total": 1_000_000_000, "physical_mb": 1024},
                "boot": {"current_boot_mode": "uefi"}},
            "root_disk": {"name": "/dev/vda", "size": 4_294_967_296_u64},
            "boot_interface": "01-52-54-00-00-00-02",
        }))
        .unwrap();
        let (changed, ports) = apply_inventory(&node(), &data);
        let want = json!({
            "cpus": 4, "cpu_arch": "x86_64", "memory_mb": 1024, "local_gb": 4,
            "capabilities": "gpu:true,boot_mode:uefi",
        });
        assert_eq!(Value::Object(changed.properties), want);
        assert_eq!(ports, ["52:54:00:00:00:02".parse().unwrap()]);
    }

    #[test]
    fn without_its_boot_interface_every_linked_interface_becomes_a_port() {
        let data = serde_json::from_value(json!({
            "inventory": {
                "interfaces": [
                    {"name": "eth0", "mac_address": "52:54:00:00:00:01", "has_carrier": true},
                    {"name": "eth1", "mac_address": "52:54:00:00:00:02", "has_carrier": false},
                    {"name": "eth2", "mac_address": "01:54:00:00:00:03", "has_carrier": true}],
                "cpu": {"count": 0, "architecture": ""},
                "memory": {"total": 2_147_483_648_u64},
                "boot": {"current_boot_mode": "bios"}},
        }))
        .unwrap();
        let mut machine = node();
        machine.properties.insert("capabilities".to_owned(), "boot_mode:uefi,gpu:true".into());
        let (changed, ports) = apply_inventory(&machine, &data);
        let want = json!({"memory_mb": 2048, "capabilities": "boot_mode:uefi,gpu:true"});
        assert_eq!(
            (changed.boot_mode, Value::Object(changed.properties)),
            (Some(BootMode::Bios), want)
        );
        assert_eq!(ports, ["52:54:00:00:00:01".parse().unwrap()]);
    }

    #[test]
    fn the_facts_of_a_bmc_become_properties() {
        let nic = |mac: &str| {
            let mac = mac.parse().unwrap();
            hardware::Nic { name: "nic".to_owned(), mac, speed_mbps: None, link_up: None }
        };
        let disk = |size_bytes| hardware::Disk {
            name: "disk".to_owned(),
            size_bytes,
            model: None,
            serial_number: None,
            rotational: None,
        };
        let inventory = Inventory {
            manufacturer: Some("ACME".to_owned()),
            memory_mib: Some(4096),
            disks: vec![disk(Some(9 << 30)), disk(Some(5 << 30)), disk(None)],
            nics: vec![nic("52:54:00:00:00:01"), nic("01:54:00:00:00:02")],
            boot_mode: Some(BootMode::Uefi),
            ..Inventory::default()
        };
        let mut machine = node();
        machine.interfaces.inspect = Some(InspectInterface::Redfish);
        let (changed, ports) = apply_bmc_inventory(&machine, &inventory);
        let want = json!({
            "memory_mb": 4096, "local_gb": 5, "vendor": "ACME",
            "capabilities": "gpu:true,boot_mode:uefi",
        });
        assert_eq!(Value::Object(changed.properties), want);
        assert_eq!(ports, ["52:54:00:00:00:01".parse().unwrap()]);

        let capabilities = |machine: &Node| {
            let (changed, _) = apply_bmc_inventory(machine, &inventory);
            assert_eq!(changed.boot_mode, Some(BootMode::Uefi), "the mode in which it starts now");
            changed.properties["capabilities"].clone()
        };
        machine.properties.insert("capabilities".to_owned(), "boot_mode: bios".into());
        assert_eq!(capabilities(&machine), "boot_mode: bios", "the operator's choice");
        assert_eq!(capabilities(&node()), "gpu:true", "the agent will tell the mode");
    }

    #[test]
    fn the_boot_mode_of_the_bmc_is_declared_if_the_agent_does_not_know_it() {
        let data = serde_json::from_value(json!({"inventory": {
            "interfaces": [], "cpu": {"count": 0, "architecture": ""}, "memory": {"total": 0},
            "boot": {"current_boot_mode": ""}}}))
        .unwrap();
        let machine = Node { boot_mode: Some(BootMode::Uefi), ..node() };
        let (changed, _) = apply_inventory(&machine, &data);
        assert_eq!(changed.boot_mode, Some(BootMode::Uefi));
        assert_eq!(changed.properties["capabilities"], "gpu:true,boot_mode:uefi");
    }

    #[test]
    fn facts_that_a_bmc_does_not_report_stay_unchanged() {
        let (changed, ports) = apply_bmc_inventory(&node(), &Inventory::default());
        assert_eq!(changed, node());
        assert!(ports.is_empty());
    }
}
