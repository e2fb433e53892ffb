//! A machine in use is rescued: it runs the ramdisk as a rescue system with a password, and then boots its disk again.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, RackedMachine};
use machine_emulator::Stage;
use serde_json::{Value, json};
use sha_crypt::ShaCrypt;
use sha_crypt::password_hash::PasswordVerifier;

use crate::kill_points::StateBefore;

const PASSWORD: &str = left::canary::RESCUE;

pub(crate) const RESCUE: &[&str] = &["rescuing", "rescue wait", "rescuing", "rescue"];

/// The body of a request for a rescue.
pub(crate) fn rescue() -> Value {
    json!({"target": "rescue", "rescue_password": PASSWORD})
}

/// Installs a machine that the agent can rescue.
pub(crate) async fn installed(lab: &Lab, machine: &RackedMachine) -> Node {
    let node = lab.available(machine).await;
    is_rescued_by_the_agent(lab, node).await;
    lab.provision(node, "active").await.reaches("active").await;
    runs_its_disk(machine).await;
    node
}

/// Takes over a machine with a blank disk that the agent can rescue.
pub(crate) async fn adopted(lab: &Lab, machine: &RackedMachine) -> Node {
    let node = lab.manageable(machine).await;
    is_rescued_by_the_agent(lab, node).await;
    lab.provision(node, "adopt").await.reaches("active").await;
    node
}

async fn is_rescued_by_the_agent(lab: &Lab, node: Node) {
    lab.set(node, "/rescue_interface", json!("agent")).await;
}

pub(crate) async fn runs_its_disk(machine: &RackedMachine) {
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
}

/// Checks that the password opens the rescue system of the machine.
pub(crate) async fn can_log_in(machine: &RackedMachine) {
    let mut stage = machine.stage();
    let stage = stage.wait_for(|stage| matches!(stage, Stage::Rescue(..))).await;
    let Stage::Rescue(_, hash) = &*stage.expect("the machine") else { unreachable!() };
    ShaCrypt::SHA512.verify_password(PASSWORD.as_bytes(), hash.as_str()).expect("the password");
}

/// Checks that the record of the node contains no password.
pub(crate) async fn has_no_password(lab: &Lab, node: Node) {
    let info = lab.node(node).await.instance_info;
    assert!(!info.keys().any(|key| key.contains("rescue")), "{info:?}");
}

async fn request(lab: &Lab, node: Node) {
    lab.ask_once(node, &lab.node(node).await, &rescue()).await;
}

async fn rescued_and_back(blueprint: Machine) {
    let lab = Lab::start().await;
    let machine = lab.rack(blueprint).await;
    let node = installed(&lab, &machine).await;
    let (disks, before) = (machine.disks(), StateBefore::of(&lab, node, &machine).await);
    request(&lab, node).await;
    lab.reaches(node, "rescue").await;
    can_log_in(&machine).await;
    assert_eq!(before.states(&lab, node).await, RESCUE);
    assert_eq!(machine.chassis().media(), None, "no medium is left in the drive");
    has_no_password(&lab, node).await;

    lab.provision(node, "unrescue").await.reaches("active").await;
    runs_its_disk(&machine).await;
    let states = [RESCUE, &["unrescuing", "active"]].concat();
    assert_eq!(before.states(&lab, node).await, states);
    assert_eq!(before.power(&machine), [ForceOff, On, ForceOff, On]);
    assert_eq!(machine.disks(), disks, "a rescue leaves the disks as they are");
}

#[tokio::test]
async fn a_machine_is_rescued_over_redfish() {
    rescued_and_back(Machine::redfish("r1u1")).await;
}

#[tokio::test]
async fn a_machine_is_rescued_over_ipmi() {
    rescued_and_back(Machine::ipmi("r1u2")).await;
}

#[tokio::test]
async fn a_machine_is_rescued_by_a_virtual_cd() {
    rescued_and_back(Machine::redfish("r1u3").uefi().boot("redfish-virtual-media")).await;
}

#[tokio::test]
async fn our_agent_rescues_a_machine_and_ends() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u4").with_our_agent()).await;
    let node = adopted(&lab, &machine).await;
    request(&lab, node).await;
    lab.reaches(node, "rescue").await;
    can_log_in(&machine).await;
}

#[tokio::test]
async fn a_rescue_is_aborted_fails_and_is_repeated() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u5")).await;
    let node = installed(&lab, &machine).await;
    machine.misbehave(|faults| faults.never_call_back = true);
    request(&lab, node).await;
    lab.reaches(node, "rescue wait").await;
    let error = lab.provision(node, "abort").await.fails("rescue failed").await;
    assert!(error.contains("aborted waiting for the agent"), "{error}");
    has_no_password(&lab, node).await;
    let target = lab.node(node).await.target_power_state;
    assert_eq!(target, None, "an abort switches nothing");
    assert!(machine.chassis().power().borrow().on);

    machine.misbehave(|faults| {
        faults.never_call_back = false;
        faults.fail_step = Some("finalize_rescue".to_owned());
    });
    request(&lab, node).await;
    let error = lab.fails(node, "rescue failed").await;
    assert!(error.contains("setting the rescue password failed"), "{error}");
    has_no_password(&lab, node).await;
    let mut power = machine.chassis().power();
    power.wait_for(|power| !power.on).await.expect("the rescue system is switched off");

    machine.misbehave(|faults| faults.fail_step = None);
    request(&lab, node).await;
    lab.reaches(node, "rescue").await;
    can_log_in(&machine).await;
    lab.provision(node, "unrescue").await.reaches("active").await;
    runs_its_disk(&machine).await;
}

#[tokio::test]
async fn a_machine_is_undeployed_from_its_rescue() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u6")).await;
    let node = installed(&lab, &machine).await;
    machine.misbehave(|faults| faults.never_call_back = true);
    request(&lab, node).await;
    lab.reaches(node, "rescue wait").await;
    machine.misbehave(|faults| faults.never_call_back = false);
    lab.provision(node, "deleted").await.reaches("available").await;
    assert!(machine.disks_are_blank());

    lab.choose(node, lab.image()).await;
    lab.provision(node, "active").await.reaches("active").await;
    request(&lab, node).await;
    lab.reaches(node, "rescue").await;
    lab.provision(node, "deleted").await.reaches("available").await;
    assert!(machine.disks_are_blank());
}
