//! Takes the inventory of the machine, in the format of ironic-python-agent.

mod bmc;
mod cpu;
mod disks;
mod interfaces;
pub mod lldp;
mod memory;
mod pci;
mod smbios;

use agent_protocol::{
    Boot, Configuration, InspectionData, Inventory, Manager, SystemFirmware, SystemVendor,
};
use hardware::{BootMode, MacAddress};

pub use self::disks::{disks, partitions_of};
pub use self::interfaces::interfaces;
use crate::root::Root;

/// The name of the agent's hardware manager, the same as the original's.
pub const MANAGER: &str = "generic_hardware_manager";
/// Must change whenever the list of steps changes.
pub const MANAGER_VERSION: &str = "1.3";

/// Returns the mode in which the machine booted.
pub fn boot_mode(root: &Root) -> BootMode {
    match root.path("/sys/firmware/efi").is_dir() {
        true => BootMode::Uefi,
        false => BootMode::Bios,
    }
}

/// Takes the part of the inventory that can be read without waiting.
pub fn take(root: &Root, booted_from: Option<MacAddress>) -> Inventory {
    let dmi = |name: &str| root.text(format!("/sys/class/dmi/id/{name}")).unwrap_or_default();
    let bmc = bmc::addresses(root);
    Inventory {
        interfaces: interfaces(root),
        cpu: cpu::cpu(root),
        disks: disks(root),
        memory: memory::memory(root),
        bmc_address: bmc.v4.map(|address| address.to_string()),
        bmc_v6address: bmc.v6.map(|address| address.to_string()),
        system_vendor: SystemVendor {
            product_name: dmi("product_name"),
            serial_number: dmi("product_serial"),
            manufacturer: dmi("sys_vendor"),
            firmware: SystemFirmware {
                vendor: dmi("bios_vendor"),
                version: dmi("bios_version"),
                build_date: dmi("bios_date"),
            },
        },
        boot: Boot {
            current_boot_mode: boot_mode(root).as_str().to_owned(),
            pxe_interface: booted_from.map(|mac| mac.to_string()),
        },
        hostname: root.text("/proc/sys/kernel/hostname").filter(|name| name != "(none)"),
    }
}

/// Takes the data of an inspection, without the parts that take time to collect.
pub fn inspect(root: &Root, booted_from: Option<MacAddress>) -> InspectionData {
    let mut data = InspectionData {
        inventory: take(root, booted_from),
        boot_interface: booted_from.map(|mac| mac.to_string()),
        pci_devices: Some(pci::devices(root)),
        configuration: Configuration {
            collectors: ["default", "pci-devices", "dmi"].map(str::to_owned).to_vec(),
            managers: vec![Manager {
                name: MANAGER.to_owned(),
                version: MANAGER_VERSION.to_owned(),
            }],
        },
        ..InspectionData::default()
    };
    data.more.insert("dmi".to_owned(), smbios::identity(root));
    data
}
