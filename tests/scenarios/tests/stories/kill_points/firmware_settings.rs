//! Changes of boot settings and BIOS settings, while the service is killed.

use bmc_emulator::{Firmware, Request};
use lab::{Lab, Machine, RackedMachine};
use reqwest::Method;
use serde_json::{Value, json};

use super::{StateBefore, every, settings};
use crate::firmware_settings;

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
    let path = format!("/v1/nodes/{}/states", node.0);
    for (setting, target) in
        [("boot_mode", json!("bios")), ("boot_mode", json!("uefi")), ("secure_boot", json!(true))]
    {
        let before = StateBefore::of(&lab, node, &machine).await;
        let ended = |states: &Value| {
            assert!(states["last_error"].is_null(), "{states:#}");
            let is_there = states[setting] == target && states["power_state"] == "power off";
            (is_there && states["target_power_state"].is_null()).then_some(())
        };
        let ask = async || {
            // An answer that a kill lost: the request is repeated, and refused if it was recorded.
            let body = json!({"target": target});
            lab.api().send(Method::PUT, &format!("{path}/{setting}"), Some(&body)).await;
        };
        let done = async || lab.api().until(&path, setting, ended).await;
        let points = lab.kill_at_every_point(every(), |_| false, ask, done).await;
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
        let path = format!("/v1/nodes/{}", node.0);
        let ended = |node: &Value| {
            assert!(node["last_error"].is_null(), "{node:#}");
            let changed = node["provision_updated_at"] != before.node["provision_updated_at"];
            (changed && node["provision_state"] == "manageable").then_some(())
        };
        let ask = async || lab.ask_once(node, &before.node, &body).await;
        let done = async || lab.api().until(&path, "manageable", ended).await;
        let points = lab.kill_at_every_point(every(), |_| false, ask, done).await;
        assert!(points.len() >= 2, "{points:#?}");
        assert_eq!(machine.chassis().bios()["EmbeddedSata"], sata, "killed at {points:#?}");
        let on = bmc_emulator::PowerRequest::On;
        let starts = before.power(&machine).into_iter().filter(|power| *power == on).count();
        assert_eq!(starts, 1, "killed at {points:#?}");
        let recorded = lab.api().get(&format!("{path}/bios/EmbeddedSata")).await;
        assert_eq!(recorded["EmbeddedSata"]["value"], sata);
    }
    let names = ["EmbeddedSata", "PowerOnDelay"].map(str::to_owned).to_vec();
    assert_eq!(changes(&machine), [Request::ChangeBios(names), Request::ResetBios]);
}
