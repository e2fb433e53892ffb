//! Fast track: an inspection, a cleaning and a deployment share one boot of the ramdisk.

use api_client::baremetald::HistoryEvent;
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Event;
use reqwest::Method;
use serde_json::{Value, json};

use crate::kill_points::{ERASES, StateBefore, WRITES};
use crate::rescue::runs_its_disk;

/// Inspects a machine, and waits until the agent reports that its ramdisk waits for more work.
pub(crate) async fn inspected(lab: &Lab, machine: &RackedMachine) -> Node {
    let node = lab.manageable(machine).await;
    lab.provision(node, "inspect").await.reaches("manageable").await;
    lab::until("a heartbeat", || machine.events().contains(&Event::Heartbeat)).await;
    node
}

async fn start() -> Lab {
    Lab::start_with(Settings { fast_track: true, ..Settings::default() }).await
}

async fn boots_once(blueprint: Machine) {
    let lab = start().await;
    let machine = lab.rack(blueprint).await;
    let all = StateBefore::default();
    let node = inspected(&lab, &machine).await;
    assert_eq!(all.power(&machine), [On], "the ramdisk stays on");
    lab.provision(node, "provide").await.reaches("available").await;
    assert_eq!(lab.node(node).await.power_state.as_deref(), Some("power on"));
    lab.provision(node, "active").await.reaches("active").await;
    runs_its_disk(&machine).await;
    assert_eq!(all.power(&machine), [On, ForceOff, On], "one boot of the ramdisk, one of the disk");
    assert_eq!(all.steps(&machine), [ERASES, WRITES].concat());
    assert_eq!(machine.chassis().media(), None, "no medium is left in the drive");
    let history = lab.history(node).await;
    let uses = history.iter().filter(|it| it.event.contains("earlier work still runs"));
    assert_eq!(uses.count(), 2, "{history:?}");
    let off = |it: &HistoryEvent| {
        it.event_type.as_deref() == Some("cleaning") && it.event.contains("machine off")
    };
    assert!(!history.iter().any(off), "{history:?}");

    // The machine runs its disk now, so its disk is erased by a ramdisk that boots.
    lab.provision(node, "deleted").await.reaches("available").await;
    let power = [On, ForceOff, On, ForceOff, On];
    assert_eq!(all.power(&machine), power, "the ramdisk stays on after the cleaning");
}

#[tokio::test]
async fn a_machine_boots_the_ramdisk_once_over_redfish() {
    boots_once(Machine::redfish("r1u1")).await;
}

#[tokio::test]
async fn a_machine_boots_the_ramdisk_once_over_ipmi() {
    boots_once(Machine::ipmi("r1u2")).await;
}

#[tokio::test]
async fn a_machine_boots_the_ramdisk_once_from_a_virtual_cd() {
    boots_once(Machine::redfish("r1u3").uefi().boot("redfish-virtual-media")).await;
}

/// Changes the power of a machine whose ramdisk waits, and cleans it: the ramdisk is gone, so the cleaning boots it.
async fn cleaned_after(name: &str, target: &str, power_state: &str) -> (Lab, RackedMachine) {
    let lab = start().await;
    let machine = lab.rack(Machine::redfish(name)).await;
    let node = inspected(&lab, &machine).await;
    let (path, body) = (format!("{}/states/power", node.path()), json!({"target": target}));
    let asked = lab.api().send(Method::PUT, &path, Some(&body)).await;
    asked.expect("a change of power");
    lab.until(node, "the change of power", |it| {
        it.target_power_state.is_none() && it.power_state.as_deref() == Some(power_state)
    })
    .await;
    lab.provision(node, "provide").await.reaches("available").await;
    (lab, machine)
}

#[tokio::test]
async fn a_machine_that_was_switched_off_boots_the_ramdisk_again() {
    let (_lab, machine) = cleaned_after("r1u4", "power off", "power off").await;
    let all = StateBefore::default();
    assert_eq!(all.power(&machine), [On, ForceOff, On]);
    assert_eq!(all.steps(&machine), ERASES);
}

#[tokio::test]
async fn a_machine_that_was_restarted_boots_the_ramdisk_again() {
    let (_lab, machine) = cleaned_after("r1u5", "rebooting", "power on").await;
    let all = StateBefore::default();
    assert_eq!(all.power(&machine), [On, ForceOff, On, ForceOff, On]);
    assert_eq!(all.steps(&machine), ERASES);
}

#[tokio::test]
async fn an_agent_whose_command_failed_gets_no_other_work() {
    let lab = start().await;
    let machine = lab.rack(Machine::redfish("r1u6")).await;
    let node = inspected(&lab, &machine).await;
    machine.misbehave(|faults| faults.fail_step = Some("erase_devices_metadata".to_owned()));
    lab.provision(node, "provide").await.fails("clean failed").await;
    machine.misbehave(|faults| faults.fail_step = None);
    let before = StateBefore::of(&lab, node, &machine).await;
    lab.end_maintenance(node).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    lab.provision(node, "provide").await.reaches("available").await;
    assert_eq!(before.power(&machine), [ForceOff, On]);
    assert_eq!(before.steps(&machine), ERASES);
}

#[tokio::test]
async fn a_node_decides_for_itself() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u7")).await;
    let node = lab.manageable(&machine).await;
    let chooses = async |value: Value| lab.set(node, "/driver_info/fast_track", value).await;
    chooses(json!(true)).await;
    lab.provision(node, "inspect").await.reaches("manageable").await;
    lab::until("a heartbeat", || machine.events().contains(&Event::Heartbeat)).await;
    let all = StateBefore::default();
    chooses(json!(false)).await;
    lab.provision(node, "provide").await.reaches("available").await;
    assert_eq!(all.power(&machine), [On, ForceOff, On, ForceOff]);

    chooses(json!("perhaps")).await;
    let refused = lab.validate(node, "boot").await.reason.expect("a reason");
    assert!(refused.contains("driver_info.fast_track: must be true or false"), "{refused}");
}
