//! What an agent found on its machine: the body of `POST /v1/continue_inspection`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything an inspection yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InspectionData {
    /// What there is.
    pub inventory: Inventory,
    /// The disk an image would be written to.
    #[serde(default)]
    pub root_disk: Option<Disk>,
    /// Address of the network interface that booted.
    #[serde(default)]
    pub boot_interface: Option<String>,
    /// Which collectors ran.
    #[serde(default)]
    pub configuration: Configuration,
    /// What went wrong on the machine.
    #[serde(default)]
    pub error: Option<String>,
    /// The agent's logs, base64 of tar.gz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
    /// PCI devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_devices: Option<Vec<PciDevice>>,
    /// One key for each further collector: `lldp_raw`, `numa_topology`, `dmi`, …
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
    /// Processors.
    pub cpu: Cpu,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Memory.
    pub memory: Memory,
    /// Address of the BMC as `/dev/ipmi0` tells.
    pub bmc_address: Option<String>,
    /// IPv6 address of the BMC.
    pub bmc_v6address: Option<String>,
    /// Maker and firmware, from SMBIOS.
    pub system_vendor: SystemVendor,
    /// How it booted.
    pub boot: Boot,
    /// The ramdisk's host name.
    pub hostname: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// `eth0`.
    pub name: String,
    /// Its address.
    pub mac_address: Option<String>,
    /// IPv4 address it has now.
    pub ipv4_address: Option<String>,
    /// IPv6 address it has now.
    pub ipv6_address: Option<String>,
    /// Whether there is a link.
    pub has_carrier: bool,
    /// LLDP values of the neighbour, as (type, hexadecimal value).
    pub lldp: Option<Vec<(u8, String)>>,
    /// PCI vendor, `0x8086`.
    pub vendor: Option<String>,
    /// PCI product.
    pub product: Option<String>,
    /// InfiniBand client id.
    pub client_id: Option<String>,
    /// BIOS device name.
    pub biosdevname: Option<String>,
    /// Speed of the link in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// `0000:01:00.0`.
    pub pci_address: Option<String>,
    /// Kernel driver.
    pub driver: Option<String>,
}

/// Processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Model.
    pub model_name: String,
    /// MHz, as text.
    pub frequency: String,
    /// Logical processors.
    pub count: u32,
    /// `x86_64`.
    pub architecture: String,
    /// Flags.
    pub flags: Vec<String>,
    /// Sockets.
    pub socket_count: Option<u32>,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// `/dev/sda`.
    pub name: String,
    /// Model.
    pub model: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Whether it turns.
    pub rotational: bool,
    /// World-wide name.
    pub wwn: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Maker.
    pub vendor: Option<String>,
    /// World-wide name with its vendor extension.
    pub wwn_with_extension: Option<String>,
    /// The vendor extension alone.
    pub wwn_vendor_extension: Option<String>,
    /// SCSI address, `0:0:0:0`.
    pub hctl: Option<String>,
    /// `/dev/disk/by-path/…`.
    pub by_path: Option<String>,
    /// Logical sector size in bytes.
    pub logical_sectors: Option<u32>,
    /// Physical sector size in bytes.
    pub physical_sectors: Option<u32>,
    /// Transport: `sata`, `nvme`, …
    pub tran: Option<String>,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Bytes the kernel has.
    pub total: u64,
    /// MiB that are fitted.
    pub physical_mb: Option<u64>,
}

/// Maker and firmware, from SMBIOS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemVendor {
    /// Model.
    pub product_name: String,
    /// Serial number.
    pub serial_number: String,
    /// Maker.
    pub manufacturer: String,
    /// Firmware.
    pub firmware: SystemFirmware,
}

/// The machine's BIOS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemFirmware {
    /// Maker.
    pub vendor: String,
    /// Version.
    pub version: String,
    /// Date.
    pub build_date: String,
}

/// How the machine booted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    /// `bios` or `uefi`.
    pub current_boot_mode: String,
    /// Address of the interface that booted.
    pub pxe_interface: Option<String>,
}

/// Which collectors ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// Their names.
    pub collectors: Vec<String>,
    /// Hardware managers and their versions.
    pub managers: Vec<Manager>,
}

/// A hardware manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One PCI device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PciDevice {
    /// Four hexadecimal digits.
    pub vendor_id: String,
    /// Four hexadecimal digits.
    pub product_id: String,
    /// Six hexadecimal digits: class, subclass, interface.
    pub class: String,
    /// Revision.
    pub revision: String,
    /// Address on the bus.
    pub bus: String,
    /// NUMA node; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node_id: Option<i32>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_addresses_of_interfaces_are_needed() {
        let least = json!({"inventory": {"interfaces": [{"mac_address": "52:54:00:00:00:01"}]}});
        let read: InspectionData = serde_json::from_value(least).unwrap();
        assert_eq!(read.inventory.interfaces[0].mac_address.as_deref(), Some("52:54:00:00:00:01"));
    }

    #[test]
    fn what_further_collectors_found_is_kept() {
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
        fn what_is_written_is_read_back(name: String, size: u64, rotational: bool, count: u32) {
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
