//! The inventory of a machine, as reported by its agent.

use bmc_emulator::DiskSpec;
use lab::{Lab, Machine, Settings};
use machine_emulator::{Event, InventoryLie};
use serde_json::json;

#[tokio::test]
async fn an_inventory_describes_the_hardware_of_the_machine() {
    let lab = Lab::start().await;
    let mut blueprint = Machine::redfish("r1u1").uefi();
    blueprint.spec.cpus = 24;
    blueprint.spec.memory_mib = 96 << 10;
    blueprint.spec.disks.push(DiskSpec {
        name: "nvme0n1".to_owned(),
        serial: "NVME1".to_owned(),
        size_bytes: 1 << 40,
        model: "Emulated NVMe".to_owned(),
        rotational: false,
    });
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    lab.provision(node, "inspect").await.reaches("manageable").await;

    let found = lab.hardware(node).await;
    assert_eq!(found.cpu.count, 24);
    assert_eq!(found.memory.physical_mb, Some(96 << 10));
    assert_eq!(found.boot.current_boot_mode, "uefi");
    assert_eq!(found.system_vendor.serial_number, machine.spec().serial);
    let disks = found.disks.into_iter().map(|disk| (disk.serial, disk.size));
    let made = machine.spec().disks.iter();
    let made = made.map(|disk| (Some(disk.serial.clone()), disk.size_bytes));
    assert!(disks.eq(made));
    let mac = machine.spec().nics[0].mac.to_string();
    assert_eq!(found.interfaces[0].mac_address.as_ref(), Some(&mac));

    let properties = lab.node(node).await.properties;
    assert_eq!((&properties["cpus"], &properties["memory_mb"]), (&json!(24), &json!(96 << 10)));
}

/// The inspection of a BMC needs no agent: the machine is never started.
#[tokio::test]
async fn a_bmc_tells_the_hardware_of_its_machine_without_the_agent() {
    let lab = Lab::start().await;
    for (mut blueprint, interface) in
        [(Machine::redfish("r1u3"), "redfish"), (Machine::idrac("r1u4"), "idrac-redfish")]
    {
        blueprint.spec.memory_mib = 96 << 10;
        let machine = lab.rack(blueprint).await;
        let node = lab.manageable(&machine).await;
        lab.set(node, "/inspect_interface", json!(interface)).await;
        lab.provision(node, "inspect").await.reaches("manageable").await;
        let properties = lab.node(node).await.properties;
        assert_eq!(properties["memory_mb"], json!(96 << 10), "{interface}");
        let events = machine.events();
        assert!(!events.contains(&Event::Started), "{interface}: {events:#?}");
    }
}

#[tokio::test]
async fn an_invalid_inventory_is_refused_and_not_stored() {
    let lab = Lab::start_with(Settings { boot_timeout: "3s", ..Settings::default() }).await;
    let machine = lab.rack(Machine::redfish("r1u2")).await;
    let node = lab.manageable(&machine).await;
    machine.misbehave(|faults| faults.lie = Some(InventoryLie::Nonsense));
    let error = lab.provision(node, "inspect").await.fails("inspect failed").await;
    assert!(error.contains("sent no inventory"), "{error}");

    machine.misbehave(|faults| faults.lie = None);
    lab.provision(node, "inspect").await.reaches("manageable").await;
    assert_eq!(lab.node(node).await.last_error, None);
}
