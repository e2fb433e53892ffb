//! Updates of firmware, while the service is killed.

use api_client::baremetald::FirmwareComponent;
use bmc_emulator::{BmcLogEntry, Outcome, PowerRequest, Request};
use lab::{Lab, Machine, RackedMachine, Settings};
use peers::kill_every;
use serde_json::json;

use super::{EVERY, StateBefore, settings};

/// The updates that the BMC accepted.
fn updates(machine: &RackedMachine) -> Vec<String> {
    let log = machine.chassis().log().into_iter();
    let accepted = log.filter(|entry| entry.outcome == Outcome::Accepted);
    let update = |entry: BmcLogEntry| {
        if let Request::UpdateFirmware { component, version } = entry.request {
            Some(format!("{component} {version}"))
        } else {
            None
        }
    };
    accepted.filter_map(update).collect()
}

/// Updates BMC and BIOS of a machine of this family while the service is killed. No update is requested twice.
async fn updates_survive_kills(name: &str, profile: &str) {
    let lab = Lab::with_mortal(Settings { ask_again: "500ms", ..settings() }).await;
    let mut blueprint = Machine::redfish(name).without_tls().uefi();
    blueprint.spec.bmc.profile = profile.to_owned();
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    lab.set(node, "/firmware_interface", json!("redfish")).await;
    let image = |name: &str| lab.images().put(name, "raw", vec![7_u8; 300_000]).url;
    let settings = json!([
        {"component": "bmc", "url": image("bmc-9.bin")},
        {"component": "bios", "url": image("bios-9.bin")},
    ]);
    let step = json!({"interface": "firmware", "step": "update", "args": {"settings": settings}});
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "clean", "clean_steps": [step], "disable_ramdisk": true});
    let ask = async || lab.ask_once(node, &before.node, &body).await;
    let done = async || lab.ends(node, &before.node, "manageable").await;
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 3, "{points:#?}");
    assert_eq!(updates(&machine), ["bmc 9", "bios 9"], "killed at {points:#?}");
    let firmware: Vec<FirmwareComponent> =
        lab.api().list(&format!("{}/firmware", node.path())).await;
    assert!(firmware[..2].iter().all(|it| it.current_version == "9"), "{firmware:#?}");
    // The machine was off, and starts after each of the two updates.
    let power = before.power(&machine);
    let starts = power.iter().filter(|power| **power == PowerRequest::On).count();
    assert_eq!(starts, 2, "{power:?} killed at {points:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_that_a_bmc_fetches_survive_kills() {
    updates_survive_kills("r1u25", "dell-idrac").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_that_are_pushed_survive_kills() {
    updates_survive_kills("r1u26", "hpe-ilo").await;
}
