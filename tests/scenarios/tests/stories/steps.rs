//! Cleaning and deployment run the steps that the agent lists, in the order and with the arguments of the request.

use api_client::baremetald::Plan;
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, Settings};
use serde_json::{Value, json};

use crate::kill_points::StateBefore;

async fn clean(lab: &Lab, node: Node, steps: &Value) {
    let body = json!({"target": "clean", "clean_steps": steps});
    lab.ask_once(node, &lab.node(node).await, &body).await;
}

/// Leaves firmware and RAID to steps of the agent. By default the BMC changes them over Redfish.
pub(crate) async fn leave_to_agent(lab: &Lab, node: Node) {
    let patch = json!([
        {"op": "add", "path": "/firmware_interface", "value": "no-firmware"},
        {"op": "add", "path": "/raid_interface", "value": "no-raid"},
    ]);
    let path = format!("/v1/nodes/{}", node.0);
    lab.api().send(reqwest::Method::PATCH, &path, Some(&patch)).await.expect("the interfaces");
}

/// A firmware update, after which the machine restarts, between two steps of other interfaces.
fn three_steps() -> Value {
    json!([
        {"interface": "deploy", "step": "burnin_cpu"},
        {"interface": "firmware", "step": "update", "args": {"url": "http://images/bios.bin"}},
        {"interface": "deploy", "step": "erase_devices"},
    ])
}

#[tokio::test]
async fn requested_clean_steps_run_in_their_order_and_the_machine_restarts_between_them() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = lab.manageable(&machine).await;
    leave_to_agent(&lab, node).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    clean(&lab, node, &three_steps()).await;
    lab.reaches(node, "manageable").await;
    let steps = ["get_clean_steps", "burnin_cpu", "update", "erase_devices", "sync"];
    assert_eq!(before.steps(&machine), steps);
    assert_eq!(before.power(&machine), [On, ForceOff, On, ForceOff]);
    let history = lab.history(node).await;
    for step in ["deploy.burnin_cpu", "firmware.update", "deploy.erase_devices"] {
        let ended = format!("the clean step {step} took ");
        let told = history.iter().filter(|it| it.event.starts_with(&ended)).count();
        assert_eq!(told, 1, "{step} in {history:#?}");
    }
    assert!(machine.disks_are_blank());
}

#[tokio::test]
async fn a_runbook_cleans_a_machine_in_the_order_of_its_steps() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u5")).await;
    let node = lab.manageable(&machine).await;
    leave_to_agent(&lab, node).await;
    // The runbook has the three steps backwards.
    let mut steps = three_steps();
    let list = steps.as_array_mut().expect("a list");
    for (order, step) in list.iter_mut().enumerate() {
        step["order"] = json!(order);
    }
    list.reverse();
    let runbook = json!({"name": "CUSTOM_REFRESH", "steps": steps});
    let send = async |method: reqwest::Method, path: &str, body: Option<&Value>| {
        lab.api().send(method, path, body).await.expect(path)
    };
    send(reqwest::Method::POST, "/v1/runbooks", Some(&runbook)).await;
    send(reqwest::Method::PUT, "/v1/runbooks/CUSTOM_REFRESH/traits/CUSTOM_REFRESH", None).await;
    let approval = format!("{}/traits/CUSTOM_REFRESH", node.path());
    send(reqwest::Method::PUT, &approval, None).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "clean", "runbook": "CUSTOM_REFRESH"});
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "manageable").await;
    let steps = ["get_clean_steps", "burnin_cpu", "update", "erase_devices", "sync"];
    assert_eq!(before.steps(&machine), steps);
    assert!(machine.disks_are_blank());
}

#[tokio::test]
async fn steps_that_the_machine_cannot_run_fail_the_cleaning_before_any_runs() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u2")).await;
    let node = lab.manageable(&machine).await;
    leave_to_agent(&lab, node).await;
    let burn = json!({"interface": "deploy", "step": "burnin_cpu"});
    for (step, why) in [
        (
            json!({"interface": "raid", "step": "create_configuration"}),
            "the machine does not offer the step raid.create_configuration",
        ),
        (
            json!({"interface": "firmware", "step": "update"}),
            "the step firmware.update needs the argument \"url\": where the firmware is",
        ),
        (
            json!({"interface": "deploy", "step": "burnin_cpu", "args": {"hours": 1}}),
            "the step deploy.burnin_cpu has no argument \"hours\"",
        ),
    ] {
        let before = StateBefore::of(&lab, node, &machine).await;
        clean(&lab, node, &json!([burn, step])).await;
        let error = lab.fails(node, "clean failed").await;
        assert!(error.starts_with(why), "{error}");
        assert_eq!(before.steps(&machine), ["get_clean_steps"]);
        lab.provision(node, "manage").await.reaches("manageable").await;
    }
}

#[tokio::test]
async fn deploy_steps_run_in_the_places_of_their_priorities() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u3")).await;
    let node = lab.available(&machine).await;
    let template = json!({
        "name": "CUSTOM_TUNED",
        "steps": [{"interface": "bios", "step": "tune", "args": {"profile": "fast"}, "priority": 90}],
    });
    lab.api().create("/v1/deploy_templates", &template).await;
    lab.set(node, "/instance_info/traits", json!(["CUSTOM_TUNED"])).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let step = json!({"interface": "deploy", "step": "inject_files", "args": {"files": []}, "priority": 70});
    let body = json!({"target": "active", "deploy_steps": [step]});
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "active").await;
    let steps =
        ["get_deploy_steps", "tune", "write_image", "inject_files", "install_bootloader", "sync"];
    assert_eq!(before.steps(&machine), steps);
}

#[tokio::test]
async fn the_plan_of_a_cleaning_is_what_the_cleaning_does() {
    let more = "[steps.clean]\n'deploy.burnin_cpu' = 50\n".to_owned();
    let lab = Lab::start_with(Settings { more, ..Settings::default() }).await;
    let machine = lab.rack(Machine::redfish("r1u6")).await;
    let node = lab.manageable(&machine).await;
    let plan = async || {
        let path = format!("/bedplate/v1/nodes/{}/plan?target=provide", node.0);
        lab.api().get::<Plan>(&path).await
    };
    let steps = |plan: &Plan| -> Vec<String> {
        let steps = plan.tasks.iter().filter_map(|task| task.step.as_ref());
        steps.map(|step| step.step.clone()).collect()
    };
    let unknown = plan().await;
    let offered = unknown.offered.as_ref().expect("a list of steps");
    assert_eq!((offered.complete, steps(&unknown)), (false, Vec::new()));

    clean(&lab, node, &json!([{"interface": "deploy", "step": "burnin_cpu"}])).await;
    lab.reaches(node, "manageable").await;
    let known = plan().await;
    let offered = known.offered.as_ref().expect("a list of steps");
    assert!(offered.steps.iter().any(|step| step.step == "burnin_cpu"), "{known:#?}");

    let before = StateBefore::of(&lab, node, &machine).await;
    lab.provision(node, "provide").await.reaches("available").await;
    let ran = before.steps(&machine);
    assert!(steps(&known).contains(&"burnin_cpu".to_owned()), "the administrator's priority");
    assert_eq!(ran[1..ran.len() - 1], steps(&known), "{ran:?}");
}

/// The service is killed at every second effect and write. Each step runs once, also the one that restarts the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_run_once_although_the_service_is_killed() {
    let settings = Settings {
        ask_again: "200ms",
        poll_every: "10ms",
        boot_timeout: "10s",
        ..Settings::default()
    };
    let lab = Lab::with_mortal(settings).await;
    let machine = lab.rack(Machine::redfish("r1u4").without_tls()).await;
    let node = lab.manageable(&machine).await;
    leave_to_agent(&lab, node).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "clean", "clean_steps": three_steps()});
    let ask = async || lab.ask_once(node, &before.node, &body).await;
    let done = async || lab.ends(node, &before.node, "manageable").await;
    let points = lab.kill_at_every_point(2, |_| false, ask, done).await;
    assert!(points.len() >= 15, "{points:#?}");
    let steps = ["get_clean_steps", "burnin_cpu", "update", "erase_devices", "sync"];
    assert_eq!(before.steps(&machine), steps, "{points:#?}");
}
