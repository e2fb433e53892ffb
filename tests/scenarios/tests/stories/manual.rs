//! A machine without a BMC: a person switches it on and off.

use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::{Content, Stage};
use serde_json::json;

/// Enrolls the machine with one port and without its BMC.
async fn enroll(lab: &Lab, machine: &RackedMachine) -> Node {
    let body = json!({
        "driver": "manual-management", "name": "bench", "automated_clean": false,
        "instance_info": lab.image().instance_info(),
    });
    let node = lab.enroll_as(&body).await;
    let port = json!({"node_uuid": node.0, "address": machine.spec().nics[0].mac.to_string()});
    lab.api().create("/v1/ports", &port).await;
    node
}

/// Pushes the power button and waits until the machine is on, or off.
async fn switch(machine: &RackedMachine, on: bool) {
    machine.chassis().push_power_button();
    machine.chassis().power().wait_for(|power| power.on == on).await.expect("the machine lives");
}

#[tokio::test]
async fn a_machine_that_a_person_switches_is_inspected_and_installed() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(Machine::redfish("r1u9")).await;
    let node = enroll(&lab, &machine).await;
    lab.provision(node, "manage").await.reaches("manageable").await;

    let inspected = lab.provision(node, "inspect").await;
    lab.reaches(node, "inspect wait").await;
    switch(&machine, true).await;
    inspected.reaches("manageable").await;
    let found = lab.hardware(node).await;
    assert_eq!(found.system_vendor.serial_number, machine.spec().serial);
    switch(&machine, false).await;

    lab.provision(node, "provide").await.reaches("available").await;
    let installed = lab.provision(node, "active").await;
    lab.reaches(node, "wait call-back").await;
    switch(&machine, true).await;
    installed.reaches("active").await;
    let off = machine.chassis().power().wait_for(|power| !power.on).await.is_ok();
    assert!(off, "the agent has shut the machine down");
    switch(&machine, true).await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    let disks = machine.disks();
    assert!(matches!(&disks[..], [Content::Image { .. }]), "the disk holds {disks:?}");
    assert_eq!(machine.chassis().log(), [], "nobody asked its BMC");
}
