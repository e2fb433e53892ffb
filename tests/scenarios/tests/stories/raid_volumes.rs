//! The BMC of a machine makes and deletes RAID volumes, and the node records what the BMC reports.

use std::time::Duration;

use bmc_emulator::{DiskSpec, Outcome, StatusFault};
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bmc_steps::{accepted, cleaning_fails, cleans, settings};

/// A machine of this family with two SSDs of 100 GiB and three hard disks of 400 GiB.
pub(crate) fn blueprint(name: &str, profile: &str) -> Machine {
    let mut machine = Machine::redfish(name).without_tls();
    machine.spec.bmc.profile = profile.to_owned();
    let first = machine.spec.disks[0].clone();
    let disk = |serial: &str, gib: u64| DiskSpec {
        name: format!("sd{}", serial.to_lowercase()),
        serial: serial.to_owned(),
        size_bytes: gib << 30,
        rotational: serial.starts_with('H'),
        ..first.clone()
    };
    let (small, large) = (["S1", "S2"], ["H1", "H2", "H3"]);
    machine.spec.disks = small.iter().map(|serial| disk(serial, 100)).collect();
    machine.spec.disks.extend(large.iter().map(|serial| disk(serial, 400)));
    machine
}

/// A manageable node with such a machine and the RAID interface `redfish`.
async fn with_volumes(lab: &Lab, name: &str, profile: &str) -> (RackedMachine, Node) {
    let machine = lab.rack(blueprint(name, profile)).await;
    let node = lab.enroll(&machine).await;
    choose(lab, node).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    (machine, node)
}

/// Chooses the RAID interface `redfish`.
pub(crate) async fn choose(lab: &Lab, node: Node) {
    lab.set(node, "/raid_interface", json!("redfish")).await;
}

pub(crate) async fn set_target(lab: &Lab, node: Node, disks: &Value) {
    let path = format!("{}/states/raid", node.path());
    let config = json!({"logical_disks": disks});
    lab.api().send(Method::PUT, &path, Some(&config)).await.expect("a target");
}

/// A mirror for the operating system and a RAID 5 for data.
pub(crate) fn two_disks() -> Value {
    json!([
        {"size_gb": 50, "raid_level": "1", "is_root_volume": true, "disk_type": "ssd", "volume_name": "os"},
        {"size_gb": "MAX", "raid_level": "5"},
    ])
}

pub(crate) fn step(name: &str, args: &Value) -> Value {
    json!([{"interface": "raid", "step": name, "args": args}])
}

/// Requests cleaning by this step, without the ramdisk.
async fn clean(lab: &Lab, node: Node, name: &str, args: &Value) {
    cleans(lab, node, &step(name, args)).await;
}

/// Requests a step that fails, and returns the reason.
async fn clean_fails(lab: &Lab, node: Node, name: &str, args: &Value) -> String {
    cleaning_fails(lab, node, &step(name, args)).await
}

/// The recorded logical disks: name, level, size, and whether the operating system belongs there.
pub(crate) async fn recorded(lab: &Lab, node: Node) -> Value {
    let config = lab.node(node).await.raid_config;
    assert!(config["last_updated"].is_string(), "{config:?}");
    let disks = config["logical_disks"].as_array().cloned().unwrap_or_default();
    let told = |disk: Value| {
        json!([disk["name"], disk["raid_level"], disk["size_gb"], disk["is_root_volume"] == true])
    };
    disks.into_iter().map(told).collect()
}

/// The name of the volume of the second logical disk, which the service chose.
fn given_name(recorded: &Value) -> String {
    let name = recorded[1][0].as_str().expect("a name").to_owned();
    assert!(name.starts_with("bp") && name.ends_with("-1") && name.len() <= 15, "{name}");
    name
}

#[tokio::test]
async fn volumes_are_made_at_once_recorded_replaced_and_deleted() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = with_volumes(&lab, "r4u1", "generic").await;
    set_target(&lab, node, &two_disks()).await;
    clean(&lab, node, "create_configuration", &json!({})).await;
    lab.reaches(node, "manageable").await;
    let told = recorded(&lab, node).await;
    let name = given_name(&told);
    assert_eq!(told, json!([["os", "1", 50, true], [name, "5", 800, false]]));
    assert_eq!(accepted(&machine), ["RAID1 of S1 S2", "RAID5 of H1 H2 H3"]);
    let shown = lab.node(node).await;
    assert_eq!(shown.properties["local_gb"], 50);
    assert!(shown.properties["capabilities"].to_string().contains("raid_level:1"), "{shown:#?}");

    // The drives are taken, until the volumes are deleted first.
    let why = clean_fails(&lab, node, "create_configuration", &json!({})).await;
    assert!(why.contains("logical_disks[0]: too few free physical disks"), "{why}");
    assert_eq!(machine.chassis().volumes().len(), 2);
    let args = json!({"delete_existing": true, "create_root_volume": false});
    clean(&lab, node, "create_configuration", &args).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(accepted(&machine)[2..], ["delete 1", "delete 2", "RAID5 of H1 H2 H3"]);
    let told = recorded(&lab, node).await;
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told}");

    clean(&lab, node, "delete_configuration", &json!({})).await;
    lab.reaches(node, "manageable").await;
    assert_eq!((machine.chassis().volumes(), recorded(&lab, node).await), (vec![], json!([])));
    let history = lab.history(node).await;
    let took = "the clean step raid.delete_configuration took ";
    let told = history.iter().filter(|it| it.event.starts_with(took)).count();
    assert_eq!(told, 1, "{history:#?}");
}

#[tokio::test]
async fn the_machine_restarts_for_each_change_that_waits_for_a_start() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = with_volumes(&lab, "r4u2", "dell-idrac").await;
    machine
        .chassis()
        .faults()
        .update(|faults| faults.volume_time = Some(Duration::from_millis(200)));
    set_target(&lab, node, &two_disks()).await;
    clean(&lab, node, "create_configuration", &json!({"delete_existing": true})).await;
    lab.reaches(node, "manageable").await;
    // The machine was off before.
    let made = ["RAID1 of S1 S2", "On", "RAID5 of H1 H2 H3", "ForceOff", "On"];
    assert_eq!(accepted(&machine), made);
    clean(&lab, node, "delete_configuration", &json!({})).await;
    lab.reaches(node, "manageable").await;
    let deleted = ["delete 1", "ForceOff", "On", "delete 2", "ForceOff", "On"];
    assert_eq!(accepted(&machine)[made.len()..], deleted);
    assert_eq!(recorded(&lab, node).await, json!([]));
}

#[tokio::test]
async fn tasks_older_services_and_newer_ones_are_understood() {
    let lab = Lab::start_with(settings()).await;
    for (name, profile) in [("r4u3", "ami-megarac"), ("r4u4", "supermicro"), ("r4u5", "lenovo-xcc")]
    {
        let (machine, node) = with_volumes(&lab, name, profile).await;
        let mut disks = two_disks();
        disks[0].as_object_mut().unwrap().remove("volume_name");
        set_target(&lab, node, &disks).await;
        clean(&lab, node, "create_configuration", &json!({})).await;
        lab.reaches(node, "manageable").await;
        assert_eq!(accepted(&machine), ["RAID1 of S1 S2", "RAID5 of H1 H2 H3"], "{profile}");
        let told = recorded(&lab, node).await;
        let root = (&told[0][1], &told[0][2], &told[0][3]);
        assert_eq!(root, (&json!("1"), &json!(50), &json!(true)), "{profile}: {told}");
        clean(&lab, node, "delete_configuration", &json!({})).await;
        lab.reaches(node, "manageable").await;
        assert!(machine.chassis().volumes().is_empty(), "{profile}");
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_by_name_before_anything_is_deleted() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = with_volumes(&lab, "r4u6", "lenovo-xcc").await;
    let delete = json!({"delete_existing": true});
    let why = clean_fails(&lab, node, "create_configuration", &delete).await;
    assert!(why.contains("target_raid_config: the node has none; set one"), "{why}");
    set_target(&lab, node, &two_disks()).await;
    clean(&lab, node, "create_configuration", &json!({})).await;
    lab.reaches(node, "manageable").await;
    let before = accepted(&machine);
    for (disk, words) in [
        (
            json!({"size_gb": 1, "raid_level": "6"}),
            "logical_disks[0].raid_level: the storage controller RAID_Slot3 makes no volumes of level 6",
        ),
        (
            json!({"size_gb": 1, "raid_level": "1", "controller": "RAID_Slot9"}),
            "logical_disks[0].controller: the BMC lists no storage controller RAID_Slot9 for RAID; it lists RAID_Slot3",
        ),
        (
            json!({"size_gb": 1, "raid_level": "1", "controller": "RAID_Slot3", "physical_disks": ["Disk.1", "Disk.9"]}),
            "logical_disks[0].physical_disks: the storage controller RAID_Slot3 lists no drive Disk.9; it lists Disk.1,",
        ),
        (
            json!({"size_gb": 900, "raid_level": "5"}),
            "logical_disks[0]: too few free physical disks of one kind and size for 900 GiB of level 5",
        ),
        (
            json!({"size_gb": 1, "raid_level": "1", "interface_type": "sas"}),
            "logical_disks[0]: too few free physical disks",
        ),
    ] {
        set_target(&lab, node, &json!([disk])).await;
        let why = clean_fails(&lab, node, "create_configuration", &delete).await;
        assert!(why.contains(words), "{why}");
    }
    let why = clean_fails(&lab, node, "create_configuration", &json!({"delete_existing": 1})).await;
    assert!(why.contains("delete_existing: must be true or false"), "{why}");
    lab.set(node, "/disable_power_off", json!(true)).await;
    let body = json!({
        "target": "clean", "clean_steps": step("delete_configuration", &json!({})), "disable_ramdisk": true,
    });
    lab.ask_once(node, &lab.node(node).await, &body).await;
    let why = lab.fails(node, "clean failed").await;
    assert!(
        why.contains("a change of RAID volumes restarts the machine, and the node has"),
        "{why}"
    );
    assert_eq!(accepted(&machine), before);
    assert_eq!(machine.chassis().volumes().len(), 2);
}

#[tokio::test]
async fn a_bmc_that_makes_no_volumes_says_so() {
    let lab = Lab::start_with(settings()).await;
    for (name, profile, words) in [
        ("r4u7", "poor", "this BMC cannot make RAID volumes: it shows no storage"),
        ("r4u8", "hpe-ilo", "the BMC lists no storage controller that makes RAID volumes"),
    ] {
        let (machine, node) = with_volumes(&lab, name, profile).await;
        set_target(&lab, node, &two_disks()).await;
        let why = clean_fails(&lab, node, "create_configuration", &json!({})).await;
        assert!(why.contains(words), "{profile}: {why}");
        assert_eq!(accepted(&machine), Vec::<String>::new(), "{profile}");
    }
}

#[tokio::test]
async fn a_full_queue_and_a_busy_bmc_delay_a_change() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = with_volumes(&lab, "r4u9", "dell-idrac").await;
    let fault = |status, retry_after| StatusFault {
        status,
        method: Some("POST".to_owned()),
        path_prefix: Some("/redfish/v1/Systems/System.Embedded.1/Storage".to_owned()),
        times: Some(1),
        retry_after,
    };
    machine.chassis().faults().update(|faults| {
        faults.status = vec![fault(412, None), fault(503, Some(1))];
        faults.job_queue_full = true;
    });
    set_target(&lab, node, &two_disks()).await;
    clean(&lab, node, "create_configuration", &json!({})).await;
    let refused = || {
        let log = machine.chassis().log().into_iter();
        let refused = log.filter(|entry| matches!(&entry.outcome, Outcome::Refused(why) if why.contains("ResourceExhaustion")));
        refused.count() > 0
    };
    lab::until("a full queue", refused).await;
    assert_eq!(accepted(&machine), Vec::<String>::new());
    machine.chassis().faults().update(|faults| faults.job_queue_full = false);
    lab.reaches(node, "manageable").await;
    assert_eq!(machine.chassis().volumes().len(), 2);
}

#[tokio::test]
async fn a_change_that_fails_or_never_ends_fails_the_step_and_is_not_repeated() {
    let lab = Lab::start_with(Settings { firmware_timeout: "1s", ..settings() }).await;
    let (machine, node) = with_volumes(&lab, "r4u10", "ami-megarac").await;
    set_target(&lab, node, &two_disks()).await;
    let faults = || machine.chassis().faults();
    faults().update(|faults| faults.volumes_fail = Some("A drive is foreign.".to_owned()));
    let why = clean_fails(&lab, node, "create_configuration", &json!({})).await;
    let words = "making the volume os failed: the task ended as Exception: A drive is foreign.";
    assert!(why.contains(words), "{why}");
    faults().update(|faults| {
        faults.volumes_fail = None;
        faults.volumes_never_end = true;
    });
    let why = clean_fails(&lab, node, "create_configuration", &json!({})).await;
    assert!(why.contains("making the volume os did not end within 1 s"), "{why}");
    assert_eq!(accepted(&machine), ["RAID1 of S1 S2", "RAID1 of S1 S2"]);
    assert!(lab.node(node).await.raid_config.is_empty());
}

#[tokio::test]
async fn a_deployment_and_a_service_apply_the_configuration_of_their_step() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = with_volumes(&lab, "r4u11", "generic").await;
    lab.provision(node, "provide").await.reaches("available").await;
    let args = json!({"raid_config": {"logical_disks": two_disks()}});
    let mut steps = step("apply_configuration", &args);
    steps[0]["priority"] = json!(90);
    let body = json!({"target": "active", "deploy_steps": steps});
    lab.ask_once(node, &lab.node(node).await, &body).await;
    lab.reaches(node, "active").await;
    // As in Ironic, the other volumes need an argument.
    assert_eq!(recorded(&lab, node).await, json!([["os", "1", 50, true]]));
    let shown = lab.node(node).await;
    assert_eq!(Value::from(shown.target_raid_config), json!({"logical_disks": two_disks()}));

    let args = json!({
        "raid_config": {"logical_disks": two_disks()}, "create_root_volume": false, "create_nonroot_volumes": true,
    });
    let steps = step("apply_configuration", &args);
    let body = json!({"target": "service", "service_steps": steps, "disable_ramdisk": true});
    lab.ask_once(node, &lab.node(node).await, &body).await;
    lab.reaches(node, "active").await;
    assert_eq!(machine.chassis().volumes().len(), 2);
    let told = recorded(&lab, node).await;
    assert_eq!(told, json!([["os", "1", 50, true], [given_name(&told), "5", 800, false]]));
}
