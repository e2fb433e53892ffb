//! The agent makes software RAID, and the node records what was made.

use api_client::baremetald;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kill_points::StateBefore;
use crate::steps::leave_to_agent;

/// A machine with two disks.
fn blueprint(name: &str) -> Machine {
    let mut machine = Machine::redfish(name).without_tls();
    let mut second = machine.spec.disks[0].clone();
    second.name = "sdb".to_owned();
    second.serial.push_str("-2");
    machine.spec.disks.push(second);
    machine
}

fn mirror() -> Value {
    json!({"logical_disks": [
        {"controller": "software", "raid_level": "1", "size_gb": 4, "is_root_volume": true},
    ]})
}

/// Enrolls a machine whose agent makes its RAID.
async fn with_raid(lab: &Lab, machine: &RackedMachine) -> Node {
    let node = lab.manageable(machine).await;
    lab.set(node, "/raid_interface", json!("agent")).await;
    node
}

async fn set_target(lab: &Lab, node: Node, config: &Value) {
    let path = format!("{}/states/raid", node.path());
    lab.api().send(Method::PUT, &path, Some(config)).await.expect("a target");
}

fn steps(names: &[&str]) -> Value {
    let step = |name: &&str| json!({"interface": "raid", "step": name});
    json!({"target": "clean", "clean_steps": names.iter().map(step).collect::<Vec<_>>()})
}

async fn clean(lab: &Lab, node: Node, names: &[&str]) {
    lab.ask_once(node, &lab.node(node).await, &steps(names)).await;
}

/// The recorded configuration without its time, which is there.
fn recorded(node: &baremetald::Node) -> Value {
    let mut config = node.raid_config.clone();
    let time = config.remove("last_updated");
    assert!(time.is_some_and(|time| time.is_string()), "{node:#?}");
    config.into()
}

#[tokio::test]
async fn a_mirror_is_made_recorded_kept_and_removed() {
    let lab = Lab::start().await;
    let machine = lab.rack(blueprint("r1u1")).await;
    let node = with_raid(&lab, &machine).await;
    set_target(&lab, node, &mirror()).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    clean(&lab, node, &["create_configuration"]).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(before.steps(&machine), ["get_clean_steps", "create_configuration", "sync"]);
    assert_eq!(machine.raid(), Some(mirror()));
    let shown = lab.node(node).await;
    assert_eq!(recorded(&shown), mirror());
    assert_eq!(shown.properties["local_gb"], 4);
    assert!(shown.properties["capabilities"].to_string().contains("raid_level:1"), "{shown:#?}");

    lab.provision(node, "provide").await.reaches("available").await;
    assert_eq!(recorded(&lab.node(node).await), mirror());

    // A deploy step replaces the configuration, and leaves the target.
    let mut other = mirror();
    other["logical_disks"][0]["size_gb"] = json!("MAX");
    let step = json!({
        "interface": "raid", "step": "apply_configuration", "priority": 90, "args": {"raid_config": other},
    });
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "active", "deploy_steps": [step]});
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "active").await;
    let ran =
        ["get_deploy_steps", "apply_configuration", "write_image", "install_bootloader", "sync"];
    assert_eq!(before.steps(&machine), ran);
    let shown = lab.node(node).await;
    assert_eq!((recorded(&shown), shown.target_raid_config.into()), (other, mirror()));

    lab.provision(node, "deleted").await.reaches("available").await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    clean(&lab, node, &["delete_configuration"]).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(machine.raid(), None);
    assert!(lab.node(node).await.raid_config.is_empty());
}

#[tokio::test]
async fn a_step_that_fails_says_how_why_and_what_to_do() {
    let lab = Lab::start().await;
    let machine = lab.rack(blueprint("r1u2")).await;
    let node = with_raid(&lab, &machine).await;
    let fails = async |names: &[&str], error: &str| {
        clean(&lab, node, names).await;
        let said = lab.fails(node, "clean failed").await;
        assert!(said.contains(error), "{said}");
        lab.end_maintenance(node).await;
        lab.provision(node, "manage").await.reaches("manageable").await;
    };
    let create = "create_configuration";
    fails(&[create], "has no target RAID configuration; set one, and run the step again").await;
    let of_bmc = json!({"logical_disks": [{"raid_level": "1", "size_gb": 4}]});
    set_target(&lab, node, &of_bmc).await;
    fails(&[create], "the agent reports no RAID configuration after the step raid.create_configuration: it has made no software RAID. Give each logical disk the controller \"software\", and run the step again").await;
    set_target(&lab, node, &mirror()).await;
    let twice = "running the clean step raid.create_configuration failed: The disks have partitions of an array.";
    fails(&[create, create], twice).await;
    assert_eq!(recorded(&lab.node(node).await), mirror(), "the first of the two steps");

    // The arrays may be gone, so the node records none.
    machine.misbehave(|faults| faults.fail_step = Some("delete_configuration".to_owned()));
    fails(&["delete_configuration"], "was told to fail delete_configuration").await;
    assert!(lab.node(node).await.raid_config.is_empty());
}

#[tokio::test]
async fn steps_of_the_agent_need_the_interface_agent() {
    let lab = Lab::start().await;
    let machine = lab.rack(blueprint("r1u3")).await;
    let node = lab.manageable(&machine).await;
    leave_to_agent(&lab, node).await;
    clean(&lab, node, &["delete_configuration"]).await;
    let error = lab.fails(node, "clean failed").await;
    assert!(error.contains("does not offer the step raid.delete_configuration"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn making_and_removing_a_mirror_survives_kills() {
    let settings = Settings {
        ask_again: "200ms",
        poll_every: "10ms",
        boot_timeout: "10s",
        ..Settings::default()
    };
    let lab = Lab::with_mortal(settings).await;
    let machine = lab.rack(blueprint("r1u4")).await;
    let node = with_raid(&lab, &machine).await;
    set_target(&lab, node, &mirror()).await;
    for (name, made) in [("create_configuration", Some(mirror())), ("delete_configuration", None)] {
        let before = StateBefore::of(&lab, node, &machine).await;
        let ask = async || lab.ask_once(node, &before.node, &steps(&[name])).await;
        let done = async || lab.ends(node, &before.node, "manageable").await;
        let is_other = |point: &str| !point.contains("agent: command");
        let points = lab.kill_at_every_point(1, is_other, ask, done).await;
        assert!(points.len() >= 2, "{points:#?}");
        let ran = before.steps(&machine);
        assert_eq!(
            ran.iter().filter(|step| *step == name).count(),
            1,
            "killed at {points:#?}: {ran:?}"
        );
        assert_eq!(machine.raid(), made);
        let shown = lab.node(node).await;
        match &made {
            Some(made) => assert_eq!(&recorded(&shown), made),
            None => assert!(shown.raid_config.is_empty()),
        }
    }
}
