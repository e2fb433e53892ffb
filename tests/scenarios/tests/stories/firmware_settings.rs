//! Boot mode, secure boot and BIOS settings of a machine, changed by its BMC.

use std::collections::BTreeMap;

use api_client::baremetald::{self, BiosSetting, HistoryEvent};
use bmc_emulator::{Firmware, Outcome, PowerRequest, Request, StatusFault};
use jiff::Timestamp;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use PowerRequest::{ForceOff, On};

use crate::bmc_steps::{cleaning_fails, cleans};

/// A machine whose BMC belongs to this family.
fn machine(name: &str, profile: &str) -> Machine {
    let mut machine = Machine::redfish(name).uefi();
    machine.spec.bmc.profile = profile.to_owned();
    machine
}

/// Settings with which a change that the firmware ignores soon fails.
fn impatient() -> Settings {
    Settings { ask_again: "200ms", boot_timeout: "1s", poll_every: "50ms", ..Settings::default() }
}

/// The number of changes of boot settings that ended, well or not.
fn ended(history: &[HistoryEvent]) -> usize {
    let is_end =
        |it: &&HistoryEvent| it.event.starts_with("changed the ") || it.severity == "ERROR";
    history.iter().filter(is_end).count()
}

/// Requests a boot setting, waits until the change has ended, and returns the node.
async fn set(lab: &Lab, node: Node, setting: &str, target: Value) -> baremetald::Node {
    let before = ended(&lab.history(node).await);
    let path = format!("{}/states/{setting}", node.path());
    let sent = lab.api().send(Method::PUT, &path, Some(&json!({"target": target}))).await;
    sent.expect("the request is accepted");
    let has_ended = async || (ended(&lab.history(node).await) > before).then_some(());
    crate::own_vm::until("the end of the change", has_ended).await;
    lab.node(node).await
}

/// The changes that the BMC accepted, without those of power and boot devices.
pub(crate) fn changes(machine: &RackedMachine) -> Vec<Request> {
    let log = machine.chassis().log().into_iter();
    let accepted = log.filter(|entry| entry.outcome == Outcome::Accepted);
    let is_setting = |request: &Request| {
        matches!(
            request,
            Request::BootMode(_)
                | Request::SecureBoot(_)
                | Request::SecureBootKeys(_)
                | Request::ChangeBios(_)
                | Request::ResetBios
        )
    };
    accepted.map(|entry| entry.request).filter(is_setting).collect()
}

/// The changes of power that the BMC accepted.
fn power(machine: &RackedMachine) -> Vec<PowerRequest> {
    let power = |request| if let Request::Power(power) = request { Some(power) } else { None };
    machine.chassis().log().into_iter().filter_map(|entry| power(entry.request)).collect()
}

#[tokio::test]
async fn boot_mode_and_secure_boot_are_read_at_verification_and_changed_at_once() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u1", "generic")).await;
    let node = lab.manageable(&machine).await;
    let verified = lab.node(node).await;
    assert_eq!((verified.boot_mode.as_deref(), verified.secure_boot), (Some("uefi"), Some(false)));

    let on = set(&lab, node, "secure_boot", json!(true)).await;
    assert_eq!((on.secure_boot, on.last_error), (Some(true), None));
    set(&lab, node, "secure_boot", json!(false)).await;
    let bios = set(&lab, node, "boot_mode", json!("bios")).await;
    assert_eq!((bios.boot_mode.as_deref(), bios.last_error), (Some("bios"), None));
    assert_eq!(machine.chassis().boot_mode(), Firmware::Bios);
    let asked =
        [Request::SecureBoot(true), Request::SecureBoot(false), Request::BootMode(Firmware::Bios)];
    assert_eq!(changes(&machine), asked);
    assert_eq!(power(&machine), [], "nothing needed a restart");

    // The BMC is not asked for the value that it has.
    set(&lab, node, "boot_mode", json!("bios")).await;
    assert_eq!(changes(&machine), asked);
    let refused = set(&lab, node, "secure_boot", json!(true)).await;
    let why = refused.last_error.unwrap_or_default();
    assert!(why.contains("secure boot needs the boot mode uefi"), "{why}");
    assert_eq!(refused.secure_boot, Some(false));
}

#[tokio::test]
async fn a_machine_restarts_for_a_change_that_its_bmc_gives_to_the_firmware() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u2", "dell-idrac")).await;
    let node = lab.manageable(&machine).await;
    let on = set(&lab, node, "secure_boot", json!(true)).await;
    assert_eq!((on.secure_boot, on.last_error), (Some(true), None));
    // The machine was off, and is off again afterwards.
    lab.until(node, "power off", |it| it.power_state.as_deref() == Some("power off")).await;
    assert_eq!(power(&machine), [On, ForceOff]);
    assert!(machine.chassis().secure_boot() && !machine.chassis().power().borrow().on);
    let history = lab.history(node).await;
    assert!(history.iter().any(|it| it.event == "changed the secure boot to on"), "{history:#?}");
}

/// Without this check, a node would be active although its machine starts unsigned programs.
#[tokio::test]
async fn a_deployment_fails_if_the_firmware_ignores_the_secure_boot_of_its_instance() {
    let lab = Lab::start_with(Settings { boot_timeout: "20s", ..impatient() }).await;
    let machine = lab.rack(machine("r1u9", "dell-idrac")).await;
    let node = lab.available(&machine).await;
    let mut instance = lab.image().instance_info();
    instance["capabilities"] = json!({"secure_boot": true});
    lab.set(node, "/instance_info", instance).await;
    machine.chassis().faults().update(|faults| faults.ignore_settings = true);
    let why = lab.provision(node, "active").await.fails("deploy failed").await;
    assert!(why.contains("its BMC still reports secure boot off after 20 s"), "{why}");
    assert_eq!(changes(&machine), [Request::SecureBoot(true)]);
}

#[tokio::test]
async fn a_machine_is_deployed_in_the_boot_mode_that_its_operator_declared() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u10", "generic")).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/properties/capabilities", json!("gpu:true,boot_mode:bios")).await;
    lab.choose(node, lab.image()).await;
    lab.provision(node, "active").await.reaches("active").await;
    assert_eq!(machine.chassis().boot_mode(), Firmware::Bios);
    assert_eq!(lab.node(node).await.boot_mode.as_deref(), Some("bios"));
    lab.provision(node, "deleted").await.reaches("available").await;
    // The machine has the declared boot mode, so the next deployment changes nothing.
    lab.choose(node, lab.image()).await;
    lab.provision(node, "active").await.reaches("active").await;
    assert_eq!(changes(&machine), [Request::BootMode(Firmware::Bios)]);
}

#[tokio::test]
async fn a_firmware_that_ignores_a_change_is_reported() {
    let lab = Lab::start_with(impatient()).await;
    let machine = lab.rack(machine("r1u3", "dell-idrac")).await;
    let node = lab.manageable(&machine).await;
    machine.chassis().faults().update(|faults| faults.ignore_settings = true);
    let failed = set(&lab, node, "boot_mode", json!("bios")).await;
    let why = failed.last_error.unwrap_or_default();
    assert!(why.contains("but reports the boot mode uefi"), "{why}");
    assert_eq!(failed.boot_mode.as_deref(), Some("uefi"));
}

#[tokio::test]
async fn a_bmc_without_the_resources_is_refused_by_name() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u4", "poor")).await;
    let node = lab.manageable(&machine).await;
    let verified = lab.node(node).await;
    assert_eq!((verified.boot_mode, verified.secure_boot), (None, None));
    for (setting, target, words) in [
        (
            "secure_boot",
            json!(true),
            "this BMC cannot change secure boot: it has no SecureBoot resource",
        ),
        ("boot_mode", json!("bios"), "this BMC cannot change the boot mode: it shows none"),
    ] {
        let failed = set(&lab, node, setting, target).await;
        let why = failed.last_error.unwrap_or_default();
        assert!(why.starts_with(words), "{why}");
    }
    let step = json!([{"interface": "bios", "step": "factory_reset"}]);
    let why = cleaning_fails(&lab, node, &step).await;
    assert!(why.contains("it has no Bios resource"), "{why}");
    assert_eq!(changes(&machine), []);
}

#[tokio::test]
async fn a_sweep_finds_settings_that_somebody_else_changed() {
    let lab = Lab::start_with(Settings { power_sync_every: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u5", "generic").without_tls()).await;
    let node = lab.manageable(&machine).await;
    let info = machine.driver_info();
    let address = info["redfish_address"].as_str().expect("an address");
    let bmc = &machine.spec().bmc;
    let patched = reqwest::Client::new()
        .patch(format!("{}/redfish/v1/Systems/1/SecureBoot", address.trim_end_matches('/')))
        .basic_auth(&bmc.username, Some(&bmc.password))
        .json(&json!({"SecureBootEnable": true}))
        .send()
        .await
        .expect("an answer");
    assert!(patched.status().is_success(), "{patched:?}");
    lab.until(node, "secure boot", |it| it.secure_boot == Some(true)).await;
}

fn apply(settings: &Value) -> Value {
    json!([{"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}])
}

pub(crate) async fn recorded(lab: &Lab, node: Node, name: &str) -> BiosSetting {
    let path = format!("{}/bios/{name}", node.path());
    let mut shown: BTreeMap<String, BiosSetting> = lab.api().get(&path).await;
    shown.remove(name).expect("the setting")
}

/// The value of a recorded BIOS setting.
pub(crate) async fn recorded_value(lab: &Lab, node: Node, name: &str) -> String {
    recorded(lab, node, name).await.value.expect("a value")
}

#[tokio::test]
async fn bios_settings_are_recorded_at_verification_and_changed_by_cleaning() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u6", "dell-idrac")).await;
    let node = lab.manageable(&machine).await;
    let delay = recorded(&lab, node, "PowerOnDelay").await;
    let kind = delay.attribute_type.as_deref();
    assert_eq!((delay.value.as_deref(), kind), (Some("0"), Some("Integer")));
    assert_eq!((delay.lower_bound, delay.upper_bound), (Some(0), Some(255)));
    assert_eq!((delay.read_only, delay.reset_required), (Some(false), Some(true)));
    let sata = recorded(&lab, node, "EmbeddedSata").await;
    assert_eq!(sata.allowable_values, ["Ata", "Ahci", "Raid", "Off"]);
    assert_eq!(recorded(&lab, node, "SerialNumber").await.unique, Some(true));

    let wanted = json!([
        {"name": "EmbeddedSata", "value": "Raid"},
        {"name": "PowerOnDelay", "value": "7"},
        {"name": "QuietBoot", "value": false},
    ]);
    cleans(&lab, node, &apply(&wanted)).await;
    lab.reaches(node, "manageable").await;
    let bios = machine.chassis().bios();
    let now = json!([bios["EmbeddedSata"], bios["PowerOnDelay"], bios["QuietBoot"]]);
    assert_eq!(now, json!(["Raid", 7, false]));
    assert_eq!(recorded_value(&lab, node, "EmbeddedSata").await, "Raid");
    assert_eq!(recorded_value(&lab, node, "QuietBoot").await, "False");
    assert_eq!(recorded(&lab, node, "PowerOnDelay").await.upper_bound, Some(255));
    assert_eq!(power(&machine), [On], "the machine was off");

    // The same settings again need no restart.
    cleans(&lab, node, &apply(&wanted)).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(changes(&machine).len(), 1);

    let reset = json!([{"interface": "bios", "step": "factory_reset"}]);
    cleans(&lab, node, &reset).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(recorded_value(&lab, node, "EmbeddedSata").await, "Ahci");
    assert_eq!(power(&machine), [On, ForceOff, On]);
    let history = lab.history(node).await;
    let took = "the clean step bios.factory_reset took ";
    assert_eq!(history.iter().filter(|it| it.event.starts_with(took)).count(), 1, "{history:#?}");
}

#[tokio::test]
async fn cleaning_replaces_the_keys_of_secure_boot() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u11", "generic")).await;
    let node = lab.manageable(&machine).await;
    for (step, has_keys) in
        [("clear_secure_boot_keys", false), ("reset_secure_boot_keys_to_default", true)]
    {
        cleans(&lab, node, &json!([{"interface": "management", "step": step}])).await;
        lab.reaches(node, "manageable").await;
        assert_eq!(machine.chassis().has_secure_boot_keys(), has_keys, "{step}");
    }
    assert_eq!(changes(&machine), [false, true].map(Request::SecureBootKeys));

    let poor = lab.rack(self::machine("r1u12", "poor")).await;
    let node = lab.manageable(&poor).await;
    let step = json!([{"interface": "management", "step": "clear_secure_boot_keys"}]);
    let why = cleaning_fails(&lab, node, &step).await;
    assert!(why.contains("it has no SecureBoot resource"), "{why}");
}

/// The step that sets the clock of the BMC.
fn set_clock(args: &Value) -> Value {
    json!([{"interface": "management", "step": "set_bmc_clock", "args": args}])
}

/// How far the clock of the BMC is from `wanted`, in seconds.
pub(crate) fn clock_off(machine: &RackedMachine, wanted: Timestamp) -> i64 {
    machine.chassis().clock().duration_since(wanted).as_secs().abs()
}

#[tokio::test]
async fn cleaning_sets_the_clock_of_the_bmc() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u13", "hpe-ilo")).await;
    let node = lab.manageable(&machine).await;
    machine.chassis().misset_clock(-86_400);
    cleans(&lab, node, &set_clock(&json!({}))).await;
    lab.reaches(node, "manageable").await;
    assert!(clock_off(&machine, Timestamp::now()) < 60, "{}", machine.chassis().clock());
    let time = "2001-02-03T04:05:06+01:00";
    let args = json!({"target_datetime": time, "datetime_local_offset": "+01:00"});
    cleans(&lab, node, &set_clock(&args)).await;
    lab.reaches(node, "manageable").await;
    assert!(clock_off(&machine, time.parse().unwrap()) < 60, "{}", machine.chassis().clock());

    let poor = lab.rack(self::machine("r1u14", "poor")).await;
    let node = lab.manageable(&poor).await;
    let why = cleaning_fails(&lab, node, &set_clock(&json!({}))).await;
    assert!(why.contains("this BMC cannot set its clock: it shows no time"), "{why}");
}

#[tokio::test]
async fn wrong_bios_settings_are_refused_by_name_before_anything_changes() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u7", "generic")).await;
    let node = lab.manageable(&machine).await;
    let wrong = json!([
        {"name": "EmbeddedSata", "value": "Raid"},
        {"name": "Nothing", "value": "x"},
        {"name": "SerialNumber", "value": "x"},
        {"name": "PowerOnDelay", "value": 256},
    ]);
    let why = cleaning_fails(&lab, node, &apply(&wrong)).await;
    for words in [
        "BIOS setting \"Nothing\" is not a setting of this machine",
        "BIOS setting \"SerialNumber\" is read only",
        "BIOS setting \"PowerOnDelay\" must be 0 to 255",
    ] {
        assert!(why.contains(words), "{why}");
    }
    assert!(!why.contains("EmbeddedSata"), "{why}");
    assert_eq!((changes(&machine), power(&machine)), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn bios_settings_that_the_firmware_ignores_fail_the_step_by_name() {
    let lab = Lab::start_with(impatient()).await;
    let machine = lab.rack(machine("r1u8", "generic")).await;
    let node = lab.manageable(&machine).await;
    machine.chassis().faults().update(|faults| faults.ignore_settings = true);
    let why =
        cleaning_fails(&lab, node, &apply(&json!([{"name": "AssetTag", "value": "t1"}]))).await;
    let words = "its firmware did not take the BIOS settings AssetTag (the BMC: The firmware did not take the value of AssetTag.)";
    assert!(why.contains(words), "{why}");
}

#[tokio::test]
async fn a_changed_tag_and_a_busy_bmc_delay_the_step() {
    let settings = Settings { ask_again: "200ms", poll_every: "50ms", ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let machine = lab.rack(machine("r1u9", "lenovo-xcc")).await;
    let node = lab.manageable(&machine).await;
    let fault = |status, retry_after| StatusFault {
        status,
        method: Some("PATCH".to_owned()),
        path_prefix: Some("/redfish/v1/Systems/1/Bios/Settings".to_owned()),
        times: Some(3),
        retry_after,
    };
    let both = vec![fault(412, None), StatusFault { times: Some(1), ..fault(503, Some(1)) }];
    machine.chassis().faults().update(|faults| faults.status = both);
    cleans(&lab, node, &apply(&json!([{"name": "AssetTag", "value": "t1"}]))).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(machine.chassis().bios()["AssetTag"], "t1");
    assert_eq!(changes(&machine).len(), 1);
}

#[tokio::test]
async fn a_deployment_changes_bios_settings_before_it_writes_the_image() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u10", "generic")).await;
    let node = lab.available(&machine).await;
    let before = crate::kill_points::StateBefore::of(&lab, node, &machine).await;
    let mut step = apply(&json!([{"name": "ProcTurboMode", "value": "Disabled"}]))[0].clone();
    step["priority"] = json!(95);
    let body = json!({"target": "active", "deploy_steps": [step]});
    lab.ask_once(node, &before.node, &body).await;
    lab.reaches(node, "active").await;
    assert_eq!(machine.chassis().bios()["ProcTurboMode"], "Disabled");
    assert_eq!(recorded_value(&lab, node, "ProcTurboMode").await, "Disabled");
    assert_eq!(before.power(&machine), [On, ForceOff, On, ForceOff, On]);
    let agent = ["get_deploy_steps", "write_image", "install_bootloader", "sync"];
    assert_eq!(before.steps(&machine), agent);
}
