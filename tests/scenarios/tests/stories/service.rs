//! Service runs steps on a machine in use and boots its disk again. Work holds where a step says so.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Stage;
use reqwest::Method;
use serde_json::{Value, json};

use crate::kill_points::StateBefore;
use crate::steps::leave_to_agent;

async fn service(lab: &Lab, node: Node, steps: &Value) {
    let body = json!({"target": "service", "service_steps": steps});
    lab.ask_once(node, &lab.node(node).await, &body).await;
}

fn update_and_tune() -> Value {
    json!([
        {"interface": "firmware", "step": "update"},
        {"interface": "bios", "step": "tune", "args": {"profile": "fast"}},
    ])
}

async fn installed(lab: &Lab, machine: &RackedMachine) -> Node {
    let node = lab.available(machine).await;
    leave_to_agent(lab, node).await;
    lab.provision(node, "active").await.reaches("active").await;
    node
}

async fn runs_its_disk(machine: &RackedMachine) {
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
}

#[tokio::test]
async fn service_steps_run_on_a_machine_in_use_which_then_boots_its_disk() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = installed(&lab, &machine).await;
    let (disks, before) = (machine.disks(), StateBefore::of(&lab, node, &machine).await);
    service(&lab, node, &update_and_tune()).await;
    lab.reaches(node, "active").await;
    assert_eq!(before.steps(&machine), ["get_service_steps", "update", "tune", "sync"]);
    assert_eq!(before.power(&machine), [ForceOff, On, ForceOff, On, ForceOff, On]);
    assert_eq!(machine.disks(), disks, "service leaves the disks as they are");
    runs_its_disk(&machine).await;
}

/// The service is killed at every third effect and write. Each step runs once, also the one that restarts the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_steps_run_once_although_baremetald_is_killed() {
    let settings = Settings {
        ask_again: "200ms",
        poll_every: "10ms",
        boot_timeout: "10s",
        ..Settings::default()
    };
    let lab = Lab::with_mortal(settings).await;
    let machine = lab.rack(Machine::redfish("r1u5").without_tls()).await;
    let node = installed(&lab, &machine).await;
    runs_its_disk(&machine).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "service", "service_steps": update_and_tune()});
    let ask = async || lab.ask_once(node, &before.node, &body).await;
    let done = async || lab.ends(node, &before.node, "active").await;
    let points = lab.kill_at_every_point(3, |_| false, ask, done).await;
    assert!(points.len() >= 8, "{points:#?}");
    let steps = ["get_service_steps", "update", "tune", "sync"];
    assert_eq!(before.steps(&machine), steps, "{points:#?}");
    runs_its_disk(&machine).await;
}

#[tokio::test]
async fn a_failed_service_is_repeated_or_given_up() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u2")).await;
    let node = installed(&lab, &machine).await;
    machine.misbehave(|faults| faults.fail_step = Some("tune".to_owned()));
    service(&lab, node, &update_and_tune()).await;
    let error = lab.fails(node, "service failed").await;
    assert!(error.contains("running the service step bios.tune failed"), "{error}");
    let failed = lab.node(node).await;
    assert_eq!((failed.maintenance, failed.fault.as_deref()), (true, Some("service failure")));
    let reason = failed.maintenance_reason.unwrap_or_default();
    assert!(reason.contains("bios.tune failed"), "{reason}");
    lab.provision(node, "abort").await.reaches("active").await;
    let path = format!("{}/states/provision", node.path());
    let again = json!({"target": "service", "service_steps": update_and_tune()});
    let refused = lab.api().send(Method::PUT, &path, Some(&again)).await;
    assert_eq!(refused.status, 400, "the node is in maintenance");

    lab.end_maintenance(node).await;
    service(&lab, node, &update_and_tune()).await;
    lab.fails(node, "service failed").await;
    machine.misbehave(|faults| faults.fail_step = None);
    lab.end_maintenance(node).await;
    service(&lab, node, &update_and_tune()).await;
    lab.reaches(node, "active").await;
    runs_its_disk(&machine).await;
}

#[tokio::test]
async fn work_holds_at_a_step_until_it_may_go_on() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u3")).await;
    let node = lab.manageable(&machine).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let steps = json!([
        {"interface": "deploy", "step": "burnin_cpu"},
        {"interface": "deploy", "step": "hold"},
        {"interface": "deploy", "step": "erase_devices"},
    ]);
    let body = json!({"target": "clean", "clean_steps": steps});
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "clean hold").await;
    assert_eq!(before.steps(&machine), ["get_clean_steps", "burnin_cpu"]);
    let power = format!("{}/states/power", node.path());
    let refused = lab.api().send(Method::PUT, &power, Some(&json!({"target": "power off"}))).await;
    assert_eq!(refused.status, 409);

    lab.provision(node, "unhold").await.reaches("manageable").await;
    let all = ["get_clean_steps", "burnin_cpu", "erase_devices", "sync"];
    assert_eq!(before.steps(&machine), all);
    assert!(machine.disks_are_blank());

    let before = StateBefore::of(&lab, node, &machine).await;
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "clean hold").await;
    let error = lab.provision(node, "abort").await.fails("clean failed").await;
    assert!(error.contains("an operator aborted holding"), "{error}");
    assert_eq!(before.steps(&machine), ["get_clean_steps", "burnin_cpu"]);
}

#[tokio::test]
async fn a_fake_machine_is_serviced_and_rescued() {
    let lab = Lab::start().await;
    let node = lab.enroll_as(&json!({"driver": "fake-hardware", "name": "fake"})).await;
    for (target, state) in
        [("manage", "manageable"), ("provide", "available"), ("active", "active")]
    {
        lab.provision(node, target).await.reaches(state).await;
    }
    let steps = json!([
        {"interface": "power", "step": "power_off"},
        {"interface": "vendor", "step": "log_passthrough"},
        {"interface": "power", "step": "wait", "args": {"seconds": 1}},
        {"interface": "power", "step": "power_on"},
    ]);
    service(&lab, node, &steps).await;
    lab.reaches(node, "active").await;

    service(&lab, node, &json!([{"interface": "vendor", "step": "trigger_servicewait"}])).await;
    lab.reaches(node, "service wait").await;
    lab.provision(node, "abort").await.fails("service failed").await;
    lab.provision(node, "abort").await.reaches("active").await;

    let rescue = json!({"target": "rescue", "rescue_password": "abc"});
    lab.ask_once(node, &lab.node(node).await, &rescue).await;
    lab.reaches(node, "rescue").await;
    lab.provision(node, "unrescue").await.reaches("active").await;
    lab.provision(node, "deleted").await.reaches("available").await;
}
