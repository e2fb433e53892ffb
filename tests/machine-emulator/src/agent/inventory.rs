//! The machine's inventory, in the form of ironic-python-agent.

use bmc_emulator::{Firmware, MachineSpec};
use serde_json::{Value, json};

use super::parameters::Parameters;
use crate::fault::InventoryLie;
use crate::machine::Machine;

/// Builds the body that is posted to `ipa-inspection-callback-url`.
pub(super) fn report(machine: &Machine, parameters: &Parameters) -> Value {
    let boot_mac = parameters.boot_mac.as_deref();
    let spec = machine.spec();
    let lie = machine.faults().lie;
    if lie == Some(InventoryLie::Nonsense) {
        return json!({"inventory": "as usual", "error": 7});
    }
    let disks: Vec<Value> =
        if lie == Some(InventoryLie::NoDisks) { Vec::new() } else { disks(spec) };
    let memory_mib = if lie == Some(InventoryLie::HalfTheMemory) {
        spec.memory_mib / 2
    } else {
        spec.memory_mib
    };
    let mut interfaces = interfaces(spec, lie == Some(InventoryLie::OtherPorts));
    if parameters.lldp {
        interfaces.iter_mut().enumerate().for_each(|(slot, it)| it["lldp"] = neighbour(slot));
    }
    json!({
        "inventory": {
            "interfaces": interfaces,
            "cpu": {
                "model_name": "Emulated CPU", "frequency": "2000.0", "count": spec.cpus,
                "architecture": "x86_64", "flags": ["lm"], "socket_count": 1,
            },
            "disks": disks,
            "memory": {"total": memory_mib << 20, "physical_mb": memory_mib},
            "bmc_address": machine.bmc().address().map(|address| address.ip().to_string()),
            "bmc_v6address": null,
            "system_vendor": {
                "product_name": spec.model, "serial_number": spec.serial, "manufacturer": spec.manufacturer,
                "firmware": {"vendor": "Emulated", "version": "1.0", "build_date": "01/01/2024"},
            },
            "boot": {
                "current_boot_mode": match spec.firmware {
                    Firmware::Bios => "bios",
                    Firmware::Uefi => "uefi",
                },
                "pxe_interface": boot_mac,
            },
            "hostname": "localhost",
        },
        "root_disk": disks.first(),
        "boot_interface": boot_mac,
        "configuration": {
            "collectors": ["default"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.1"}],
        },
        "error": null,
    })
}

fn disks(spec: &MachineSpec) -> Vec<Value> {
    let disk = |(bay, disk): (usize, &bmc_emulator::DiskSpec)| {
        json!({
            "name": format!("/dev/{}", disk.name), "model": disk.model, "size": disk.size_bytes,
            "rotational": disk.rotational, "wwn": null, "serial": disk.serial, "vendor": "Emulated",
            "wwn_with_extension": null, "wwn_vendor_extension": null, "hctl": format!("0:0:{bay}:0"),
            "by_path": format!("/dev/disk/by-path/pci-0000:00:1f.2-ata-{bay}"),
            "logical_sectors": 512, "physical_sectors": 512, "tran": "sata",
        })
    };
    spec.disks.iter().enumerate().map(disk).collect()
}

/// The values that the switch at a network card sends by LLDP (IEEE 802.1AB): the chassis by its MAC address, the port by its name, and the
/// name of the switch.
fn neighbour(slot: usize) -> Value {
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let port = hex(&format!("Ethernet1/{slot}"));
    json!([[1, "04020000000700"], [2, format!("05{port}")], [3, "0078"], [5, hex("rack-tor")]])
}

fn interfaces(spec: &MachineSpec, lies: bool) -> Vec<Value> {
    let interface = |(slot, nic): (usize, &bmc_emulator::NicSpec)| {
        let mut mac = nic.mac;
        if lies {
            mac.0[5] ^= 0xff;
        }
        json!({
            "name": format!("eth{slot}"), "mac_address": mac, "ipv4_address": null, "ipv6_address": null,
            "has_carrier": true, "lldp": null, "vendor": "0x8086", "product": "0x1572", "client_id": null,
            "biosdevname": null, "speed_mbps": nic.speed_mbps, "pci_address": format!("0000:01:00.{slot}"),
            "driver": "i40e",
        })
    };
    spec.nics.iter().enumerate().map(interface).collect()
}
