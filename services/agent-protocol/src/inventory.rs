//! The inventory that an agent takes of its machine: the body of `POST /v1/continue_inspection`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InspectionData {
    pub inventory: Inventory,
    /// The disk that an image would be written to.
    #[serde(default)]
    pub root_disk: Option<Disk>,
    /// MAC address of the network interface that booted.
    #[serde(default)]
    pub boot_interface: Option<String>,
    #[serde(default)]
    pub configuration: Configuration,
    #[serde(default)]
    pub error: Option<String>,
    /// The agent's logs, as base64 of a tar.gz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_devices: Option<Vec<PciDevice>>,
    /// The results of further collectors, one key each: `lldp_raw`, `numa_topology`, `dmi`, …
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// The parts of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    pub interfaces: Vec<Interface>,
    pub cpu: Cpu,
    pub disks: Vec<Disk>,
    pub memory: Memory,
    /// Address of the BMC, read through `/dev/ipmi0`.
    pub bmc_address: Option<String>,
    pub bmc_v6address: Option<String>,
    /// Maker, model and firmware, from SMBIOS.
    pub system_vendor: SystemVendor,
    pub boot: Boot,
    /// Host name of the ramdisk.
    pub hostname: Option<String>,
}

/// A network interface card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Name in the kernel: `eth0`.
    pub name: String,
    pub mac_address: Option<String>,
    pub ipv4_address: Option<String>,
    pub ipv6_address: Option<String>,
    /// Whether the link is up.
    pub has_carrier: bool,
    /// LLDP values that the neighbour sent, as (type, hexadecimal value).
    pub lldp: Option<Vec<(u8, String)>>,
    /// Vendor id of PCI: `0x8086`.
    pub vendor: Option<String>,
    pub product: Option<String>,
    /// Client id of an InfiniBand interface.
    pub client_id: Option<String>,
    /// Name that the `biosdevname` tool would give.
    pub biosdevname: Option<String>,
    pub speed_mbps: Option<u32>,
    /// Address on the PCI bus: `0000:01:00.0`.
    pub pci_address: Option<String>,
    pub driver: Option<String>,
}

/// All processors of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    pub model_name: String,
    /// Clock rate in MHz, as text.
    pub frequency: String,
    /// Number of logical processors.
    pub count: u32,
    /// Name of the architecture: `x86_64`.
    pub architecture: String,
    pub flags: Vec<String>,
    pub socket_count: Option<u32>,
}

/// A disk of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Path of the device: `/dev/sda`.
    pub name: String,
    pub model: Option<String>,
    /// Size of the disk in bytes.
    pub size: u64,
    /// True for a disk with spinning platters.
    pub rotational: bool,
    /// World-wide name without its vendor extension.
    pub wwn: Option<String>,
    pub serial: Option<String>,
    pub vendor: Option<String>,
    /// World-wide name with its vendor extension.
    pub wwn_with_extension: Option<String>,
    pub wwn_vendor_extension: Option<String>,
    /// Address on the SCSI bus: `0:0:0:0`.
    pub hctl: Option<String>,
    /// Path of the form `/dev/disk/by-path/…`.
    pub by_path: Option<String>,
    /// Size of a logical sector in bytes.
    pub logical_sectors: Option<u32>,
    /// Size of a physical sector in bytes.
    pub physical_sectors: Option<u32>,
    /// Transport: `sata`, `nvme`, …
    pub tran: Option<String>,
}

/// Memory of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Bytes that the kernel manages.
    pub total: u64,
    /// MiB of installed memory modules.
    pub physical_mb: Option<u64>,
}

/// Maker, model and firmware, from SMBIOS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemVendor {
    pub product_name: String,
    pub serial_number: String,
    pub manufacturer: String,
    pub firmware: SystemFirmware,
}

/// The BIOS or UEFI firmware of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemFirmware {
    pub vendor: String,
    pub version: String,
    pub build_date: String,
}

/// The boot that the agent runs in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    /// `bios` or `uefi`.
    pub current_boot_mode: String,
    /// MAC address of the interface that booted.
    pub pxe_interface: Option<String>,
}

/// The collectors and hardware managers that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    pub collectors: Vec<String>,
    pub managers: Vec<Manager>,
}

/// A hardware manager of the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manager {
    pub name: String,
    pub version: String,
}

/// A PCI device of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PciDevice {
    /// Four hexadecimal digits.
    pub vendor_id: String,
    /// Four hexadecimal digits.
    pub product_id: String,
    /// Six hexadecimal digits: class, subclass, programming interface.
    pub class: String,
    pub revision: String,
    /// Address on the PCI bus.
    pub bus: String,
    /// Absent on a machine without NUMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node_id: Option<i32>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_of_an_inventory_is_optional() {
        let least = json!({"inventory": {"interfaces": [{"mac_address": "52:54:00:00:00:01"}]}});
        let read: InspectionData = serde_json::from_value(least).unwrap();
        assert_eq!(read.inventory.interfaces[0].mac_address.as_deref(), Some("52:54:00:00:00:01"));
    }

    #[test]
    fn results_of_unknown_collectors_are_kept() {
        let sent = json!({"inventory": {}, "numa_topology": {"ram": []}});
        let read: InspectionData = serde_json::from_value(sent).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["numa_topology"], json!({"ram": []}));
    }

    proptest! {
        #[test]
        fn no_body_panics(body: Vec<u8>) {
            let _ = serde_json::from_slice::<InspectionData>(&body);
        }

        #[test]
        fn a_written_inventory_is_read_back(name: String, size: u64, rotational: bool, count: u32) {
            let disk = Disk { name, size, rotational, ..Disk::default() };
            let data = InspectionData {
                inventory: Inventory { cpu: Cpu { count, ..Cpu::default() }, disks: vec![disk], ..Inventory::default() },
                ..InspectionData::default()
            };
            let text = serde_json::to_string(&data).unwrap();
            prop_assert_eq!(serde_json::from_str::<InspectionData>(&text).unwrap(), data);
        }
    }
}
