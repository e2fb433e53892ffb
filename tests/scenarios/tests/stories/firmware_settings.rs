//! Boot mode, secure boot and BIOS settings of a machine, changed by its BMC.

use bmc_emulator::{Firmware, Outcome, PowerRequest, Request, StatusFault};
use jiff::Timestamp;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use PowerRequest::{ForceOff, On};

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

async fn states(lab: &Lab, node: Node) -> Value {
    lab.api().get(&format!("/v1/nodes/{}/states", node.0)).await
}

/// The number of changes of boot settings that ended, well or not.
fn ended(history: &Value) -> usize {
    let entries = history["history"].as_array().into_iter().flatten();
    let is_end = |entry: &&Value| {
        let event = entry["event"].as_str().unwrap_or_default();
        event.starts_with("changed the ") || entry["severity"] == "ERROR"
    };
    entries.filter(is_end).count()
}

/// Requests a boot setting, waits until the change has ended, and returns the states of the node.
async fn set(lab: &Lab, node: Node, setting: &str, target: Value) -> Value {
    let history = format!("/v1/nodes/{}/history?detail=true&limit=1000", node.0);
    let before = ended(&lab.api().get(&history).await);
    let path = format!("/v1/nodes/{}/states/{setting}", node.0);
    let sent = lab.api().send(Method::PUT, &path, Some(&json!({"target": target}))).await;
    sent.expect("the request is accepted");
    let has_ended = |history: &Value| (ended(history) > before).then_some(());
    lab.api().until(&history, "the end of the change", has_ended).await;
    states(lab, node).await
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
    let verified = states(&lab, node).await;
    assert_eq!((&verified["boot_mode"], &verified["secure_boot"]), (&json!("uefi"), &json!(false)));

    let on = set(&lab, node, "secure_boot", json!(true)).await;
    assert_eq!((&on["secure_boot"], &on["last_error"]), (&json!(true), &Value::Null));
    set(&lab, node, "secure_boot", json!(false)).await;
    let bios = set(&lab, node, "boot_mode", json!("bios")).await;
    assert_eq!((&bios["boot_mode"], &bios["last_error"]), (&json!("bios"), &Value::Null));
    assert_eq!(machine.chassis().boot_mode(), Firmware::Bios);
    let asked =
        [Request::SecureBoot(true), Request::SecureBoot(false), Request::BootMode(Firmware::Bios)];
    assert_eq!(changes(&machine), asked);
    assert_eq!(power(&machine), [], "nothing needed a restart");

    // The BMC is not asked for the value that it has.
    set(&lab, node, "boot_mode", json!("bios")).await;
    assert_eq!(changes(&machine), asked);
    let refused = set(&lab, node, "secure_boot", json!(true)).await;
    let why = refused["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("secure boot needs the boot mode uefi"), "{why}");
    assert_eq!(refused["secure_boot"], false);
}

#[tokio::test]
async fn a_machine_restarts_for_a_change_that_its_bmc_gives_to_the_firmware() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u2", "dell-idrac")).await;
    let node = lab.manageable(&machine).await;
    let on = set(&lab, node, "secure_boot", json!(true)).await;
    assert_eq!((&on["secure_boot"], &on["last_error"]), (&json!(true), &Value::Null));
    // The machine was off, and is off again afterwards.
    let path = format!("/v1/nodes/{}/states", node.0);
    let is_off = |states: &Value| (states["power_state"] == "power off").then_some(());
    lab.api().until(&path, "power off", is_off).await;
    assert_eq!(power(&machine), [On, ForceOff]);
    assert!(machine.chassis().secure_boot() && !machine.chassis().power().borrow().on);
    let history = lab.history(node).await;
    assert!(
        history.iter().any(|(_, event)| event == "changed the secure boot to on"),
        "{history:#?}"
    );
}

/// Without this check, a node would be active although its machine starts unsigned programs.
#[tokio::test]
async fn a_deployment_fails_if_the_firmware_ignores_the_secure_boot_of_its_instance() {
    let lab = Lab::start_with(Settings { boot_timeout: "20s", ..impatient() }).await;
    let machine = lab.rack(machine("r1u9", "dell-idrac")).await;
    let node = lab.available(&machine).await;
    let mut instance = lab.image().instance_info();
    instance["capabilities"] = json!({"secure_boot": true});
    let path = format!("/v1/nodes/{}", node.0);
    let patch = json!([{"op": "add", "path": "/instance_info", "value": instance}]);
    lab.api().send(Method::PATCH, &path, Some(&patch)).await.expect("an instance");
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
    let path = format!("/v1/nodes/{}", node.0);
    let declare = json!([
        {"op": "add", "path": "/properties/capabilities", "value": "gpu:true,boot_mode:bios"},
        {"op": "add", "path": "/instance_info", "value": lab.image().instance_info()},
    ]);
    lab.api().send(Method::PATCH, &path, Some(&declare)).await.expect("a declaration");
    lab.provision(node, "active").await.reaches("active").await;
    assert_eq!(machine.chassis().boot_mode(), Firmware::Bios);
    assert_eq!(states(&lab, node).await["boot_mode"], "bios");
    lab.provision(node, "deleted").await.reaches("available").await;
    // The machine has the declared boot mode, so the next deployment changes nothing.
    lab.api().send(Method::PATCH, &path, Some(&declare)).await.expect("an instance");
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
    let why = failed["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("but reports the boot mode uefi"), "{why}");
    assert_eq!(failed["boot_mode"], "uefi");
}

#[tokio::test]
async fn a_bmc_without_the_resources_is_refused_by_name() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u4", "poor")).await;
    let node = lab.manageable(&machine).await;
    let verified = states(&lab, node).await;
    assert_eq!((&verified["boot_mode"], &verified["secure_boot"]), (&Value::Null, &Value::Null));
    for (setting, target, words) in [
        (
            "secure_boot",
            json!(true),
            "this BMC cannot change secure boot: it has no SecureBoot resource",
        ),
        ("boot_mode", json!("bios"), "this BMC cannot change the boot mode: it shows none"),
    ] {
        let failed = set(&lab, node, setting, target).await;
        let why = failed["last_error"].as_str().unwrap_or_default();
        assert!(why.starts_with(words), "{why}");
    }
    let step = json!([{"interface": "bios", "step": "factory_reset"}]);
    let why = clean_fails(&lab, node, &step).await;
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
    let path = format!("/v1/nodes/{}/states", node.0);
    let seen = |states: &Value| (states["secure_boot"] == true).then_some(());
    lab.api().until(&path, "secure boot", seen).await;
}

/// Requests cleaning by these steps, without the ramdisk.
async fn clean(lab: &Lab, node: Node, steps: &Value) {
    let body = json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true});
    lab.ask_once(node, &lab.node(node).await, &body).await;
}

/// Requests cleaning that fails, and returns the reason.
async fn clean_fails(lab: &Lab, node: Node, steps: &Value) -> String {
    clean(lab, node, steps).await;
    let why = lab.fails(node, "clean failed").await;
    lab.end_maintenance(node).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    why
}

fn apply(settings: &Value) -> Value {
    json!([{"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}])
}

/// A recorded BIOS setting of the node.
async fn recorded(lab: &Lab, node: Node, name: &str) -> Value {
    let setting = lab.api().get(&format!("/v1/nodes/{}/bios/{name}", node.0)).await;
    setting[name].clone()
}

#[tokio::test]
async fn bios_settings_are_recorded_at_verification_and_changed_by_cleaning() {
    let lab = Lab::start_with(Settings { ask_again: "200ms", ..Settings::default() }).await;
    let machine = lab.rack(machine("r1u6", "dell-idrac")).await;
    let node = lab.manageable(&machine).await;
    let delay = recorded(&lab, node, "PowerOnDelay").await;
    let want = json!(["0", "Integer", 0, 255, false, true]);
    let told = [
        &delay["value"],
        &delay["attribute_type"],
        &delay["lower_bound"],
        &delay["upper_bound"],
        &delay["read_only"],
        &delay["reset_required"],
    ];
    assert_eq!(json!(told), want);
    let sata = recorded(&lab, node, "EmbeddedSata").await;
    assert_eq!(sata["allowable_values"], json!(["Ata", "Ahci", "Raid", "Off"]));
    assert_eq!(recorded(&lab, node, "SerialNumber").await["unique"], true);

    let wanted = json!([
        {"name": "EmbeddedSata", "value": "Raid"},
        {"name": "PowerOnDelay", "value": "7"},
        {"name": "QuietBoot", "value": false},
    ]);
    clean(&lab, node, &apply(&wanted)).await;
    lab.reaches(node, "manageable").await;
    let bios = machine.chassis().bios();
    let now = json!([bios["EmbeddedSata"], bios["PowerOnDelay"], bios["QuietBoot"]]);
    assert_eq!(now, json!(["Raid", 7, false]));
    assert_eq!(recorded(&lab, node, "EmbeddedSata").await["value"], "Raid");
    assert_eq!(recorded(&lab, node, "QuietBoot").await["value"], "False");
    assert_eq!(recorded(&lab, node, "PowerOnDelay").await["upper_bound"], 255);
    assert_eq!(power(&machine), [On], "the machine was off");

    // The same settings again need no restart.
    clean(&lab, node, &apply(&wanted)).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(changes(&machine).len(), 1);

    let reset = json!([{"interface": "bios", "step": "factory_reset"}]);
    clean(&lab, node, &reset).await;
    lab.reaches(node, "manageable").await;
    assert_eq!(recorded(&lab, node, "EmbeddedSata").await["value"], "Ahci");
    assert_eq!(power(&machine), [On, ForceOff, On]);
    let history = lab.history(node).await;
    let took = "the clean step bios.factory_reset took ";
    assert_eq!(
        history.iter().filter(|(_, event)| event.starts_with(took)).count(),
        1,
        "{history:#?}"
    );
}

#[tokio::test]
async fn cleaning_replaces_the_keys_of_secure_boot() {
    let lab = Lab::start().await;
    let machine = lab.rack(machine("r1u11", "generic")).await;
    let node = lab.manageable(&machine).await;
    for (step, has_keys) in
        [("clear_secure_boot_keys", false), ("reset_secure_boot_keys_to_default", true)]
    {
        clean(&lab, node, &json!([{"interface": "management", "step": step}])).await;
        lab.reaches(node, "manageable").await;
        assert_eq!(machine.chassis().has_secure_boot_keys(), has_keys, "{step}");
    }
    assert_eq!(changes(&machine), [false, true].map(Request::SecureBootKeys));

    let poor = lab.rack(self::machine("r1u12", "poor")).await;
    let node = lab.manageable(&poor).await;
    let step = json!([{"interface": "management", "step": "clear_secure_boot_keys"}]);
    let why = clean_fails(&lab, node, &step).await;
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
    clean(&lab, node, &set_clock(&json!({}))).await;
    lab.reaches(node, "manageable").await;
    assert!(clock_off(&machine, Timestamp::now()) < 60, "{}", machine.chassis().clock());
    let time = "2001-02-03T04:05:06+01:00";
    let args = json!({"target_datetime": time, "datetime_local_offset": "+01:00"});
    clean(&lab, node, &set_clock(&args)).await;
    lab.reaches(node, "manageable").await;
    assert!(clock_off(&machine, time.parse().unwrap()) < 60, "{}", machine.chassis().clock());

    let poor = lab.rack(self::machine("r1u14", "poor")).await;
    let node = lab.manageable(&poor).await;
    let why = clean_fails(&lab, node, &set_clock(&json!({}))).await;
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
    let why = clean_fails(&lab, node, &apply(&wrong)).await;
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
    let why = clean_fails(&lab, node, &apply(&json!([{"name": "AssetTag", "value": "t1"}]))).await;
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
    clean(&lab, node, &apply(&json!([{"name": "AssetTag", "value": "t1"}]))).await;
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
    assert_eq!(recorded(&lab, node, "ProcTurboMode").await["value"], "Disabled");
    assert_eq!(before.power(&machine), [On, ForceOff, On, ForceOff, On]);
    let agent = ["get_deploy_steps", "write_image", "install_bootloader", "sync"];
    assert_eq!(before.steps(&machine), agent);
}
