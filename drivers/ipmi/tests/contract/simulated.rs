//! Tests of further features with ipmi_sim: inventory, sensors, event log.

use bmc::ReadingHealth;
use hardware::{BootDevice, BootMode, BootOverride, Firmware, Persistence};
use ipmi::Connector;

use crate::ipmi_sim::IpmiSim;

#[tokio::test]
async fn the_inventory_is_that_of_the_machine() {
    let Some(sim) = IpmiSim::start() else { return };
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(sim.endpoint().target());

    let fru = client.fru().await.unwrap();
    let (chassis, board) = (fru.chassis.unwrap(), fru.board.unwrap());
    assert_eq!((chassis.kind, chassis.serial_number.as_deref()), (0x17, Some("CH0001")));
    assert_eq!((board.product.as_deref(), board.made_at), (Some("Board X1"), Some(820_540_800)));
    assert_eq!(fru.product.unwrap().asset_tag.as_deref(), Some("asset-7"));

    let bmc = connector.bmc(sim.endpoint().target());
    let inventory = bmc.inspection.unwrap().inventory().await.unwrap();
    assert_eq!(inventory.manufacturer.as_deref(), Some("Acme Servers"));
    assert_eq!(inventory.model.as_deref(), Some("R650 Clone"));
    assert_eq!(inventory.serial_number.as_deref(), Some("SN12345"));
    let firmware = Firmware { component: "bmc".to_owned(), version: "2.42".to_owned() };
    assert_eq!(inventory.firmware, [firmware]);
}

#[tokio::test]
async fn sensors_have_the_values_ipmitool_shows() {
    let Some(sim) = IpmiSim::start() else { return };
    let connector = Connector::bind().await.unwrap();
    let bmc = connector.bmc(sim.endpoint().target());

    let readings = bmc.sensors.unwrap().readings().await.unwrap();
    let shown: Vec<_> = readings
        .iter()
        .map(|reading| {
            (reading.name.as_str(), reading.value, reading.unit.as_str(), reading.health)
        })
        .collect();
    let want = [
        ("CPU Temp", Some(45.0), "degrees C", ReadingHealth::Ok),
        ("Fan 1", Some(600.0), "RPM", ReadingHealth::Critical),
        ("12V", Some(11.97), "Volts", ReadingHealth::Ok),
        ("PS1 Status", None, "", ReadingHealth::Unknown),
    ];
    assert_eq!(shown, want);
    // As `ipmitool sdr elist -v` shows them as Sensor ID and Entity ID.
    let named = readings.iter().map(|it| (it.sensor.id.as_str(), it.sensor.place.as_str()));
    let ids = ["CPU Temp (0x1)", "Fan 1 (0x2)", "12V (0x3)", "PS1 Status (0x4)"];
    assert_eq!(named.collect::<Vec<_>>(), ids.map(|id| (id, "7.1 (System Board)")));
}

#[tokio::test]
async fn the_event_log_shows_the_newest_entries_oldest_first() {
    let Some(sim) = IpmiSim::start() else { return };
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(sim.endpoint().target());
    let sensors = connector.bmc(sim.endpoint().target()).sensors.unwrap();

    assert_eq!(client.sel_info().await.unwrap().entries, 2);
    let messages = async |limit| -> Vec<String> {
        let entries = sensors.event_log(limit).await.unwrap();
        entries.into_iter().map(|entry| entry.message).collect()
    };
    let fan = "Fan sensor 0x02: lower critical going low asserted, reading 0x08, threshold 0x0a";
    let supply = "Power Supply sensor 0x04: input lost asserted";
    assert_eq!(messages(10).await, [supply, fan]);
    assert_eq!(messages(1).await, [fan]);
    assert_eq!(messages(0).await, [""; 0]);
}

#[tokio::test]
async fn the_boot_device_reaches_the_machine() {
    let Some(sim) = IpmiSim::start() else { return };
    let connector = Connector::bind().await.unwrap();
    let boot = connector.bmc(sim.endpoint().target()).boot;

    let wanted =
        [(BootDevice::Pxe, "pxe"), (BootDevice::Cdrom, "cdrom"), (BootDevice::Bios, "bios")];
    for (device, word) in wanted {
        let (persistence, mode) = (Persistence::Continuous, Some(BootMode::Uefi));
        boot.set(BootOverride { device, persistence, mode }).await.unwrap();
        assert_eq!(sim.boot_device(), word);
    }
}
