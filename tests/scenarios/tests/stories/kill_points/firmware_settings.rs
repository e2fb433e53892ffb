//! Changes of boot settings and BIOS settings, while the service is killed.

use api_client::baremetald;
use bmc_emulator::{Firmware, Request};
use jiff::Timestamp;
use lab::{Lab, Machine, RackedMachine, Settings};
use peers::kill_every;
use reqwest::Method;
use serde_json::json;

use super::{EVERY, StateBefore, settings};
use crate::firmware_settings::{self, recorded_value};

/// A machine that applies every change at its next start.
async fn racked(lab: &Lab, name: &str) -> RackedMachine {
    let mut blueprint = Machine::redfish(name).without_tls().uefi();
    blueprint.spec.bmc.profile = "dell-idrac".to_owned();
    lab.rack(blueprint).await
}

/// The changes of settings that the BMC accepted, without repetitions.
fn changes(machine: &RackedMachine) -> Vec<Request> {
    let mut changes = firmware_settings::changes(machine);
    changes.dedup();
    changes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_boot_settings_survive_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = racked(&lab, "r1u20").await;
    let node = lab.manageable(&machine).await;
    for (setting, target) in
        [("boot_mode", json!("bios")), ("boot_mode", json!("uefi")), ("secure_boot", json!(true))]
    {
        let before = StateBefore::of(&lab, node, &machine).await;
        let ended = |it: &baremetald::Node| {
            assert_eq!(it.last_error, None, "{it:#?}");
            let now = json!({"boot_mode": it.boot_mode, "secure_boot": it.secure_boot});
            let is_off = it.power_state.as_deref() == Some("power off");
            now[setting] == target && is_off && it.target_power_state.is_none()
        };
        let ask = async || {
            // An answer that a kill lost: the request is repeated, and refused if it was recorded.
            let path = format!("{}/states/{setting}", node.path());
            lab.api().send(Method::PUT, &path, Some(&json!({"target": target}))).await;
        };
        let done = async || drop(lab.until(node, setting, ended).await);
        let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
        assert!(points.len() >= 2, "{setting}: {points:#?}");
        let power = before.power(&machine);
        let restart = [bmc_emulator::PowerRequest::On, bmc_emulator::PowerRequest::ForceOff];
        assert_eq!(power, restart, "{setting} killed at {points:#?}");
    }
    let asked = [
        Request::BootMode(Firmware::Bios),
        Request::BootMode(Firmware::Uefi),
        Request::SecureBoot(true),
    ];
    assert_eq!(changes(&machine), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_bios_settings_survive_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = racked(&lab, "r1u21").await;
    let node = lab.manageable(&machine).await;
    let wanted =
        json!([{"name": "EmbeddedSata", "value": "Raid"}, {"name": "PowerOnDelay", "value": 7}]);
    let steps = [
        json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": wanted}}),
        json!({"interface": "bios", "step": "factory_reset"}),
    ];
    for (step, sata) in steps.into_iter().zip(["Raid", "Ahci"]) {
        let before = StateBefore::of(&lab, node, &machine).await;
        let body = json!({"target": "clean", "clean_steps": [step], "disable_ramdisk": true});
        let ask = async || lab.ask_once(node, &before.node, &body).await;
        let done = async || lab.ends(node, &before.node, "manageable").await;
        let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
        assert!(points.len() >= 2, "{points:#?}");
        assert_eq!(machine.chassis().bios()["EmbeddedSata"], sata, "killed at {points:#?}");
        let on = bmc_emulator::PowerRequest::On;
        let starts = before.power(&machine).into_iter().filter(|power| *power == on).count();
        assert_eq!(starts, 1, "killed at {points:#?}");
        assert_eq!(recorded_value(&lab, node, "EmbeddedSata").await, sata);
    }
    let names = ["EmbeddedSata", "PowerOnDelay"].map(str::to_owned).to_vec();
    assert_eq!(changes(&machine), [Request::ChangeBios(names), Request::ResetBios]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_the_management_interface_survive_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = racked(&lab, "r1u23").await;
    let node = lab.manageable(&machine).await;
    machine.chassis().misset_clock(-86_400);
    let before = lab.node(node).await;
    let steps = json!([
        {"interface": "management", "step": "clear_secure_boot_keys"},
        {"interface": "management", "step": "set_bmc_clock"},
        // The machine of this BMC clears its keys when it starts.
        {"interface": "power", "step": "power_on"},
    ]);
    let body = json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true});
    let ask = async || lab.ask_once(node, &before, &body).await;
    let done = async || lab.ends(node, &before, "manageable").await;
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 2, "{points:#?}");
    assert!(!machine.chassis().has_secure_boot_keys(), "killed at {points:#?}");
    assert_eq!(changes(&machine), [Request::SecureBootKeys(false)]);
    assert!(firmware_settings::clock_off(&machine, Timestamp::now()) < 60);
}

/// Secure Boot is on while the instance runs, and off while the ramdisk runs, which is not signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secure_boot_of_an_instance_survives_kills() {
    let lab = Lab::with_mortal(Settings { power_sync_every: "500ms", ..settings() }).await;
    let machine = racked(&lab, "r1u22").await;
    let node = lab.available(&machine).await;
    let mut instance = lab.image().instance_info();
    instance["capabilities"] = json!({"secure_boot": "true", "boot_mode": "uefi"});
    lab.set(node, "/instance_info", instance).await;

    for (target, state, secure) in
        [("active", "active", true), ("rebuild", "active", true), ("deleted", "available", false)]
    {
        let before = StateBefore::of(&lab, node, &machine).await;
        let body = json!({"target": target});
        let ask = async || lab.ask_once(node, &before.node, &body).await;
        let ended = |it: &baremetald::Node| {
            assert_eq!(it.last_error, None, "{it:#?}");
            let changed = it.provision_updated_at != before.node.provision_updated_at;
            let is_over = changed && it.state() == state;
            assert!(!is_over || !secure || it.secure_boot == Some(true), "{target}: {it:#?}");
            // The start of the ramdisk applies the last change, and the next sweep records it.
            is_over && it.secure_boot == Some(secure)
        };
        let done = async || drop(lab.until(node, state, ended).await);
        let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
        assert!(points.len() >= 2, "{target}: {points:#?}");
        assert_eq!(machine.chassis().secure_boot(), secure, "{target} killed at {points:#?}");
    }
    let [on, off] = [true, false].map(Request::SecureBoot);
    assert_eq!(changes(&machine), [on.clone(), off.clone(), on, off]);
}
