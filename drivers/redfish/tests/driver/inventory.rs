//! Tests of the inventory read from resource trees of four vendors.

use crate::fixture::{Fixture, silent};
use bmc::Reading;
use expect_test::{Expect, expect};
use hardware::Inventory;
use redfish::Auth;

const DELL: &str = include_str!("trees/dell.json");
const HPE: &str = include_str!("trees/hpe.json");
const SUPERMICRO: &str = include_str!("trees/supermicro.json");

fn reported(machine: &Inventory) -> String {
    let mut lines = vec![
        format!("{:?} {:?} {:?}", machine.manufacturer, machine.model, machine.serial_number),
        format!("{:?} {:?} MiB {:?}", machine.processor, machine.memory_mib, machine.boot_mode),
    ];
    lines.extend(machine.nics.iter().map(|nic| format!("{nic:?}")));
    lines.extend(machine.disks.iter().map(|disk| format!("{disk:?}")));
    lines.extend(machine.firmware.iter().map(|f| format!("{} {}", f.component, f.version)));
    lines.join("\n")
}

async fn check(tree: &str, want: Expect) {
    let fixture = Fixture::serve(tree, silent).await;
    let bmc = fixture.bmc(Auth::Basic);
    let inventory = bmc.inspection.unwrap().inventory().await.unwrap();
    want.assert_eq(&reported(&inventory));
}

#[tokio::test]
async fn a_tree_like_dells_is_expanded() {
    check(DELL, expect![[r#"
        Some("Dell Inc.") Some("PowerEdge R750") Some("CNIVC0000000001")
        Processor { sockets: Some(2), threads: Some(64), architecture: Some("x86_64"), model: Some("Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz") } Some(262144) MiB Some(Uefi)
        Nic { name: "NIC.Embedded.1-1-1", mac: b0:7b:25:00:00:01, speed_mbps: Some(1000), link_up: Some(true) }
        Nic { name: "NIC.Embedded.2-1-1", mac: b0:7b:25:00:00:02, speed_mbps: None, link_up: Some(false) }
        Disk { name: "Physical Disk 0:1:0", size_bytes: Some(479559942144), model: Some("MZ7LH480HBHQ0D3"), serial_number: Some("S5YJNA0R000001"), rotational: Some(false) }
        Disk { name: "Physical Disk 0:1:1", size_bytes: Some(2400476553216), model: Some("ST2400MM0159"), serial_number: Some("WBM00001"), rotational: Some(true) }
        bios 1.8.2
        bmc 6.10.30.00
        Integrated Dell Remote Access Controller 6.10.30.00"#]]).await;
}

#[tokio::test]
async fn a_tree_like_hpes_has_its_addresses_on_adapters() {
    check(HPE, expect![[r#"
        Some("HPE") Some("ProLiant DL380 Gen11") Some("CZ00000001")
        Processor { sockets: Some(2), threads: None, architecture: None, model: Some("Intel(R) Xeon(R) Gold 5418Y") } Some(65536) MiB Some(Uefi)
        Nic { name: "DE07A000/1", mac: 5c:ed:8c:00:00:01, speed_mbps: Some(25000), link_up: Some(true) }
        Disk { name: "480GB 6G SATA SSD", size_bytes: Some(480103981056), model: Some("VK000480GXAWK"), serial_number: Some("S0000000000001"), rotational: Some(false) }
        bios U54 v1.20
        bmc iLO 6 v1.35"#]]).await;
}

#[tokio::test]
async fn a_tree_like_supermicros_has_numbers_as_text_and_links_to_nothing() {
    check(SUPERMICRO, expect![[r#"
        Some("Supermicro") Some("SYS-120U-TNR") None
        Processor { sockets: Some(2), threads: None, architecture: None, model: Some("Xeon") } Some(131072) MiB Some(Bios)
        Nic { name: "1", mac: 3c:ec:ef:00:00:02, speed_mbps: None, link_up: None }
        Disk { name: "SATA Disk 0", size_bytes: Some(960197124096), model: Some("Micron 5300"), serial_number: None, rotational: None }
        bios 1.4a
        bmc 01.01.06"#]]).await;
}

#[tokio::test]
async fn an_almost_empty_tree_still_gives_an_inventory() {
    check(
        r#"{"/redfish/v1": {"Systems": {"@odata.id": "/redfish/v1/Systems"}},
            "/redfish/v1/Systems": {"Members": [{"@odata.id": "/s"}]},
            "/s": {"Links": 7, "Boot": "none", "Storage": {"@odata.id": 3}, "Processors": [], "Memory": {"@odata.id": "//evil/"}}}"#,
        expect![[r#"
            None None None
            Processor { sockets: None, threads: None, architecture: None, model: None } None MiB None"#]],
    )
    .await;
}

#[tokio::test]
async fn expansion_saves_requests() {
    let fixture = Fixture::serve(DELL, silent).await;
    fixture.bmc(Auth::Basic).inspection.unwrap().inventory().await.unwrap();
    // Root, systems, system, 3 collections, 3 drives, manager, chassis, update service, firmware.
    assert_eq!(fixture.asked().len(), 13);
}

async fn readings(tree: &str) -> Vec<Reading> {
    let fixture = Fixture::serve(tree, silent).await;
    fixture.bmc(Auth::Basic).sensors.unwrap().readings().await.unwrap()
}

#[tokio::test]
async fn sensors_are_read_in_their_old_form_and_in_their_new() {
    let names = |found: Vec<Reading>| -> Vec<String> {
        found.into_iter().map(|r| format!("{} {:?} {}", r.name, r.value, r.unit)).collect()
    };
    expect![[r#"
        [
            "System Board Inlet Temp Some(22.0) degrees C",
            "System Board Fan1A Some(8280.0) RPM",
            "PS1 Voltage 1 Some(230.0) Volts",
            "System Power Control Some(236.0) Watts",
        ]
    "#]]
    .assert_debug_eq(&names(readings(DELL).await));
    expect![[r#"
        [
            "01-Inlet Ambient Some(21.5) degrees C",
        ]
    "#]]
    .assert_debug_eq(&names(readings(HPE).await));
    assert!(readings(SUPERMICRO).await.is_empty());
}

async fn log(tree: &str, limit: usize) -> Vec<String> {
    let fixture = Fixture::serve(tree, silent).await;
    let log = fixture.bmc(Auth::Basic).sensors.unwrap().event_log(limit).await.unwrap();
    log.into_iter().map(|entry| format!("{} {:?} {}", entry.id, entry.at, entry.message)).collect()
}

#[tokio::test]
async fn every_page_of_the_event_log_is_read() {
    expect![[r#"
        [
            "1 Some(1709305200) Log cleared.",
            "2 Some(1709478000) The chassis is open while the power is off.",
            "3 Some(1709481600) The chassis is closed while the power is off.",
        ]
    "#]]
    .assert_debug_eq(&log(DELL, 10).await);
    expect![[r#"
        [
            "2 Some(1704153600) Power supply inserted.",
        ]
    "#]]
    .assert_debug_eq(&log(HPE, 1).await);
}
