//! Updates of the firmware of a machine, by its BMC.

use std::time::Duration;

use api_client::baremetald::FirmwareComponent;
use bmc_emulator::{Outcome, StatusFault};
use lab::{ImageFault, Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bmc_steps::{accepted, cleaning_fails, cleans, settings};

/// A manageable node whose BMC belongs to this family, with the firmware interface `redfish`.
async fn updatable(lab: &Lab, name: &str, profile: &str) -> (RackedMachine, Node) {
    let mut machine = Machine::redfish(name).without_tls();
    machine.spec.bmc.profile = profile.to_owned();
    let machine = lab.rack(machine).await;
    let node = lab.enroll(&machine).await;
    lab.set(node, "/firmware_interface", json!("redfish")).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    (machine, node)
}

fn image(lab: &Lab, name: &str) -> String {
    lab.images().put(name, "raw", vec![3_u8; 200_000]).url
}

fn update(settings: &Value) -> Value {
    json!([{"interface": "firmware", "step": "update", "args": {"settings": settings}}])
}

/// Requests cleaning by these updates, without the ramdisk.
async fn clean(lab: &Lab, node: Node, settings: &Value) {
    cleans(lab, node, &update(settings)).await;
}

/// Requests updates that fail, and returns the reason.
async fn clean_fails(lab: &Lab, node: Node, settings: &Value) -> String {
    cleaning_fails(lab, node, &update(settings)).await
}

/// The recorded versions: the component, the version that was read first, the current one, and the one that replaced another.
async fn versions(lab: &Lab, node: Node) -> Vec<Value> {
    let components = lab.api().list(&format!("{}/firmware", node.path())).await;
    let told = |it: FirmwareComponent| {
        json!([it.component, it.initial_version, it.current_version, it.last_version_flashed])
    };
    components.into_iter().map(told).collect()
}

fn nic(machine: &RackedMachine) -> String {
    let mac: String = machine.spec().nics[0].mac.into();
    format!("nic:{}", mac.replace(':', "").to_uppercase())
}

#[tokio::test]
async fn bmc_bios_and_adapter_are_updated_in_order_and_the_machine_restarts_between() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u1", "dell-idrac").await;
    let nic = nic(&machine);
    let before = [
        json!(["bios", "2.19.1", "2.19.1", null]),
        json!(["bmc", "7.00.00.00", "7.00.00.00", null]),
        json!([nic, "22.31.6", "22.31.6", null]),
    ];
    assert_eq!(versions(&lab, node).await, before);
    // The BMC restarts after its own update, and answers nothing meanwhile.
    machine.chassis().faults().update(|faults| {
        faults.update_time = Some(Duration::from_millis(300));
        faults.bmc_restart = Some(Duration::from_secs(1));
    });
    let settings = json!([
        {"component": "bmc", "url": image(&lab, "bmc-7.10.bin")},
        {"component": "bios", "url": image(&lab, "bios-2.20.bin"), "wait": 1},
        {"component": nic, "url": image(&lab, "nic-23.bin")},
    ]);
    clean(&lab, node, &settings).await;
    lab.reaches(node, "manageable").await;
    let after = [
        json!(["bios", "2.19.1", "2.20", "2.20"]),
        json!(["bmc", "7.00.00.00", "7.10", "7.10"]),
        json!([nic, "22.31.6", "23", "23"]),
    ];
    assert_eq!(versions(&lab, node).await, after);
    let nic = format!("{nic} 23");
    // The machine was off before.
    let want = ["bmc 7.10", "On", "bios 2.20", "ForceOff", "On", &*nic, "ForceOff", "On"];
    assert_eq!(accepted(&machine), want);
    let history = lab.history(node).await;
    let took = "the clean step firmware.update took ";
    let told = history.iter().filter(|it| it.event.starts_with(took)).count();
    assert_eq!(told, 1, "{history:#?}");
}

#[tokio::test]
async fn an_image_is_pushed_to_a_bmc_that_fetches_none() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u2", "hpe-ilo").await;
    let wanted = json!([{"component": "bios", "url": image(&lab, "bios-3.bin")}]);
    clean(&lab, node, &wanted).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(accepted(&machine), ["bios 3", "On"]);
    assert_eq!(machine.chassis().updated_firmware("bios").as_deref(), Some("3"));
    assert_eq!(versions(&lab, node).await[0], json!(["bios", "U30 v2.90", "3", "3"]));
}

#[tokio::test]
async fn an_image_that_the_server_does_not_send_whole_is_not_installed() {
    let lab = Lab::start_with(Settings { bmc_timeout: "1s", ..settings() }).await;
    let (machine, node) = updatable(&lab, "r2u8", "hpe-ilo").await;
    let wanted = json!([{"component": "bios", "url": image(&lab, "bios-4.bin")}]);
    for (fault, words) in
        [(ImageFault::Truncated, "/bios-4.bin: "), (ImageFault::Refused, "the server answered 503")]
    {
        lab.images().misbehave("bios-4.bin", fault);
        let why = clean_fails(&lab, node, &wanted).await;
        assert!(why.contains("the image at http://127.0.0.1:") && why.contains(words), "{why}");
    }
    assert_eq!(accepted(&machine), Vec::<String>::new());
    lab.images().misbehave("bios-4.bin", ImageFault::None);
    clean(&lab, node, &wanted).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(machine.chassis().updated_firmware("bios").as_deref(), Some("4"));
}

#[tokio::test]
async fn wrong_settings_are_refused_by_name_before_anything_is_sent() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u3", "generic").await;
    let good = image(&lab, "bios-2.bin");
    for (second, words) in [
        (
            json!({"component": "gpu", "url": good}),
            "settings[1].component: must be bios, bmc, or nic:",
        ),
        (
            json!({"component": "nic:NOTHING", "url": good}),
            "settings[1].component: the BMC lists no firmware of nic:NOTHING; it lists bios, bmc, nic:",
        ),
        (
            json!({"component": "bmc", "url": "ftp://h/x"}),
            "settings[1].url: must be an http or https URL",
        ),
        (
            json!({"component": "bmc", "url": "http://169.254.169.254/x"}),
            "settings[1].url: 169.254.169.254 is not in the list of allowed hosts",
        ),
        (json!({"component": "bmc", "url": good, "wait": 0}), "settings[1].wait: must be"),
        (
            json!({"component": "bmc", "url": good, "checksum": "x"}),
            "settings[1].checksum: is not a field",
        ),
    ] {
        let why =
            clean_fails(&lab, node, &json!([{"component": "bios", "url": good}, second])).await;
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(accepted(&machine), Vec::<String>::new());

    lab.set(node, "/disable_power_off", json!(true)).await;
    let steps = update(&json!([{"component": "bios", "url": good}]));
    let body = json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true});
    lab.ask_once(node, &lab.node(node).await, &body).await;
    let why = lab.fails(node, "clean failed").await;
    assert!(why.contains("the node has disable_power_off set"), "{why}");
    assert_eq!(accepted(&machine), Vec::<String>::new());
}

#[tokio::test]
async fn a_bmc_that_cannot_update_says_so() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u4", "poor").await;
    let why =
        clean_fails(&lab, node, &json!([{"component": "bios", "url": image(&lab, "bios-2.bin")}]))
            .await;
    assert!(why.contains("this BMC cannot update firmware: it has no UpdateService"), "{why}");
    assert_eq!(accepted(&machine), Vec::<String>::new());
}

#[tokio::test]
async fn a_full_queue_a_changed_tag_and_a_busy_bmc_delay_an_update() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u5", "dell-idrac").await;
    let fault = |status, retry_after| StatusFault {
        status,
        method: Some("POST".to_owned()),
        path_prefix: Some("/redfish/v1/UpdateService/Actions".to_owned()),
        times: Some(1),
        retry_after,
    };
    machine.chassis().faults().update(|faults| {
        faults.status = vec![fault(412, None), fault(503, Some(1))];
        faults.job_queue_full = true;
    });
    let wanted = json!([{"component": "bios", "url": image(&lab, "bios-2.bin")}]);
    clean(&lab, node, &wanted).await;
    let refused = || {
        let log = machine.chassis().log().into_iter();
        let refused = log.filter(|entry| matches!(&entry.outcome, Outcome::Refused(why) if why.contains("ResourceExhaustion")));
        refused.count() > 0
    };
    lab::until("a full queue", refused).await;
    assert_eq!(accepted(&machine), Vec::<String>::new());
    machine.chassis().faults().update(|faults| faults.job_queue_full = false);
    lab.reaches(node, "manageable").await;
    assert_eq!(accepted(&machine), ["bios 2", "On"]);
}

#[tokio::test]
async fn an_update_that_fails_or_never_ends_fails_the_step_and_is_not_repeated() {
    let lab = Lab::start_with(Settings { firmware_timeout: "1s", ..settings() }).await;
    let (machine, node) = updatable(&lab, "r2u6", "dell-idrac").await;
    let wanted = json!([{"component": nic(&machine), "url": image(&lab, "nic-2.bin")}]);
    machine
        .chassis()
        .faults()
        .update(|faults| faults.updates_fail = Some("The image is not signed.".to_owned()));
    let why = clean_fails(&lab, node, &wanted).await;
    assert!(why.contains("failed: the task ended as Exception: The image is not signed."), "{why}");
    machine.chassis().faults().update(|faults| {
        faults.updates_fail = None;
        faults.updates_never_end = true;
    });
    let why = clean_fails(&lab, node, &wanted).await;
    assert!(why.contains("did not end within 1 s"), "{why}");
    assert_eq!(accepted(&machine).len(), 2, "{:?}", accepted(&machine));
}

#[tokio::test]
async fn a_machine_in_use_is_updated_by_service_unless_its_host_was_not_drained() {
    let lab = Lab::start_with(settings()).await;
    let (machine, node) = updatable(&lab, "r2u7", "generic").await;
    lab.provision(node, "provide").await.reaches("available").await;
    lab.provision(node, "active").await.reaches("active").await;
    let steps = update(&json!([{"component": "bios", "url": image(&lab, "bios-2.bin")}]));
    let body = json!({"target": "service", "service_steps": steps});
    lab.set(node, "/instance_info/hypervisor_hostname", json!("r2u7")).await;
    lab.ask_once(node, &lab.node(node).await, &body).await;
    let why = lab.fails(node, "service failed").await;
    assert!(why.contains("compute host r2u7 was not drained"), "{why}");
    assert_eq!(machine.chassis().updated_firmware("bios"), None);
    lab.end_maintenance(node).await;
    lab.provision(node, "abort").await.reaches("active").await;

    let unset = json!([{"op": "remove", "path": "/instance_info/hypervisor_hostname"}]);
    lab.api().send(Method::PATCH, &node.path(), Some(&unset)).await.expect("the change");
    lab.ask_once(node, &lab.node(node).await, &body).await;
    lab.reaches(node, "active").await;
    assert_eq!(machine.chassis().updated_firmware("bios").as_deref(), Some("2"));
}
