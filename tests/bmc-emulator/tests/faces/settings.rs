//! Boot mode, secure boot and BIOS attributes over Redfish.

use bmc_emulator::{Firmware, Outcome, Request, StatusFault};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::TestMachine;

/// The path of a part of the only system.
async fn part(bench: &TestMachine, part: &str) -> String {
    format!("{}/{part}", bench.system().await)
}

async fn restart(bench: &TestMachine) {
    let reset = part(bench, "Actions/ComputerSystem.Reset").await;
    for power in ["On", "ForceOff"] {
        let (status, answer) = bench.send(Method::POST, &reset, json!({"ResetType": power})).await;
        assert!(status < 300, "{answer}");
    }
}

fn attributes(values: Value) -> Value {
    json!({"Attributes": values})
}

#[tokio::test]
async fn attributes_wait_in_the_settings_resource_for_the_next_start() {
    let bench = TestMachine::redfish("generic").await;
    let (bios, settings) = (part(&bench, "Bios").await, part(&bench, "Bios/Settings").await);
    let shown = bench.get(&bios).await;
    assert_eq!(shown["@Redfish.Settings"]["SettingsObject"]["@odata.id"], settings);
    assert_eq!(shown["Attributes"]["SerialNumber"], bench.machine.spec().serial);
    let wanted = attributes(json!({"EmbeddedSata": "Raid", "PowerOnDelay": 7}));
    assert_eq!(bench.send(Method::PATCH, &settings, wanted).await.0, 200);
    assert_eq!(bench.get(&bios).await["Attributes"]["EmbeddedSata"], "Ahci");
    assert_eq!(bench.get(&settings).await["Attributes"]["EmbeddedSata"], "Raid");
    restart(&bench).await;
    let shown = bench.get(&bios).await;
    assert_eq!(shown["Attributes"]["EmbeddedSata"], "Raid");
    assert_eq!(shown["@Redfish.Settings"]["Messages"], json!([]));
    let names = ["EmbeddedSata", "PowerOnDelay"].map(str::to_owned).to_vec();
    assert_eq!(bench.machine.log()[0].request, Request::ChangeBios(names));

    let reset = part(&bench, "Bios/Actions/Bios.ResetBios").await;
    assert_eq!(bench.send(Method::POST, &reset, json!({})).await.0, 204);
    restart(&bench).await;
    assert_eq!(bench.machine.bios()["PowerOnDelay"], 0);
}

#[tokio::test]
async fn the_settings_resource_of_some_vendors_shows_only_what_changes() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let settings = part(&bench, "Bios/Settings").await;
    assert_eq!(bench.get(&settings).await["Attributes"], json!({}));
    let wanted = json!({"AssetTag": "t1"});
    bench.send(Method::PATCH, &settings, attributes(wanted.clone())).await;
    assert_eq!(bench.get(&settings).await["Attributes"], wanted);
    restart(&bench).await;
    assert_eq!(bench.get(&settings).await["Attributes"], json!({}));
}

#[tokio::test]
async fn a_wrong_attribute_is_refused_and_changes_nothing() {
    let bench = TestMachine::redfish("generic").await;
    let settings = part(&bench, "Bios/Settings").await;
    for (wrong, message) in [
        (json!({"Nothing": 1}), "PropertyUnknown"),
        (json!({"SerialNumber": "x"}), "PropertyNotWritable"),
        (json!({"EmbeddedSata": "raid"}), "PropertyValueNotInList"),
        (json!({"EmbeddedSata": 1}), "PropertyValueTypeError"),
        (json!({"PowerOnDelay": 256}), "PropertyValueNotInList"),
        (json!({"PowerOnDelay": "7"}), "PropertyValueTypeError"),
        (json!({"QuietBoot": "true"}), "PropertyValueTypeError"),
        (json!({"AssetTag": "0123456789abcdefg"}), "PropertyValueNotInList"),
        (json!({"AssetTag": "t1", "SysPassword": 1}), "PropertyValueTypeError"),
    ] {
        let (status, answer) =
            bench.send(Method::PATCH, &settings, attributes(wrong.clone())).await;
        assert_eq!(status, 400, "{wrong}");
        let id = answer["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().unwrap();
        assert!(id.ends_with(message), "{wrong}: {id}");
    }
    let now = json!({"Attributes": {}, "@Redfish.SettingsApplyTime": {"ApplyTime": "Immediate"}});
    assert_eq!(bench.send(Method::PATCH, &settings, now).await.0, 400);
    restart(&bench).await;
    assert_eq!(bench.machine.bios()["AssetTag"], "");
}

#[tokio::test]
async fn an_older_tag_is_refused() {
    let bench = TestMachine::redfish("generic").await;
    let settings = part(&bench, "Bios/Settings").await;
    let tag = bench.get(&settings).await["@odata.etag"].as_str().unwrap().to_owned();
    let wanted = |tag: &str| attributes(json!({"AssetTag": tag}));
    let with_tag = || bench.ask(Method::PATCH, &settings).header("if-match", &tag);
    assert_eq!(with_tag().json(&wanted("t1")).send().await.unwrap().status(), 200);
    assert_eq!(with_tag().json(&wanted("t2")).send().await.unwrap().status(), 412);
}

#[tokio::test]
async fn firmware_can_ignore_its_settings_and_a_bmc_can_ask_for_patience() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let (bios, settings) = (part(&bench, "Bios").await, part(&bench, "Bios/Settings").await);
    let busy =
        StatusFault { status: 503, times: Some(1), retry_after: Some(3), ..StatusFault::default() };
    bench.machine.faults().update(|faults| {
        faults.ignore_settings = true;
        faults.status.push(busy);
    });
    let answer = bench.ask(Method::GET, &bios).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"3".parse().unwrap())
    );
    bench.send(Method::PATCH, &settings, attributes(json!({"AssetTag": "t1"}))).await;
    restart(&bench).await;
    let shown = bench.get(&bios).await;
    assert_eq!(shown["Attributes"]["AssetTag"], "");
    let message = &shown["@Redfish.Settings"]["Messages"][0];
    assert_eq!(message["RelatedProperties"], json!(["#/Attributes/AssetTag"]));
    assert_ne!(message["MessageSeverity"], "OK");
}

#[tokio::test]
async fn the_boot_mode_changes_at_once_or_at_the_next_start() {
    for (profile, waits) in [("generic", false), ("dell-idrac", true)] {
        let bench = TestMachine::redfish(profile).await;
        let system = bench.system().await;
        let legacy = json!({"Boot": {"BootSourceOverrideMode": "Legacy"}});
        assert_eq!(bench.send(Method::PATCH, &system, legacy).await.0, 200);
        assert_eq!(bench.machine.boot_mode() == Firmware::Uefi, waits, "{profile}");
        restart(&bench).await;
        assert_eq!(bench.machine.boot_mode(), Firmware::Bios);
        let boot = bench.get(&system).await["Boot"].clone();
        assert_eq!(boot["BootSourceOverrideMode"], "Legacy");
        assert_eq!(boot["BootSourceOverrideEnabled"], "Disabled", "the override stays as it was");
    }
}

#[tokio::test]
async fn secure_boot_needs_uefi_and_is_in_force_after_a_start() {
    let bench = TestMachine::redfish("generic").await;
    let secure = part(&bench, "SecureBoot").await;
    let on = json!({"SecureBootEnable": true});
    assert_eq!(bench.send(Method::PATCH, &secure, on.clone()).await.0, 200);
    let shown = bench.get(&secure).await;
    assert_eq!(
        (&shown["SecureBootEnable"], &shown["SecureBootCurrentBoot"]),
        (&json!(true), &json!("Disabled"))
    );
    restart(&bench).await;
    assert_eq!(bench.get(&secure).await["SecureBootCurrentBoot"], "Enabled");
    let legacy = json!({"Boot": {"BootSourceOverrideMode": "Legacy"}});
    bench.send(Method::PATCH, &bench.system().await, legacy).await;
    assert_eq!(bench.send(Method::PATCH, &secure, on).await.0, 400);
    let log = bench.machine.log();
    assert!(matches!(log.last().unwrap().outcome, Outcome::Refused(_)), "{log:?}");
}

#[tokio::test]
async fn without_keys_secure_boot_stays_off() {
    let bench = TestMachine::redfish("generic").await;
    let (secure, reset) = (
        part(&bench, "SecureBoot").await,
        part(&bench, "SecureBoot/Actions/SecureBoot.ResetKeys").await,
    );
    let on = json!({"SecureBootEnable": true});
    assert_eq!(bench.send(Method::PATCH, &secure, on.clone()).await.0, 200);
    let delete = json!({"ResetKeysType": "DeleteAllKeys"});
    assert_eq!(bench.send(Method::POST, &reset, delete).await.0, 204);
    let shown = bench.get(&secure).await;
    let told = (&shown["SecureBootEnable"], &shown["SecureBootMode"]);
    assert_eq!(told, (&json!(false), &json!("SetupMode")));
    assert_eq!(bench.send(Method::PATCH, &secure, on.clone()).await.0, 400);
    for wrong in [json!({}), json!({"ResetKeysType": "Some"}), json!({"ResetKeysType": 1})] {
        assert_eq!(bench.send(Method::POST, &reset, wrong).await.0, 400);
    }
    let factory = json!({"ResetKeysType": "ResetAllKeysToDefault"});
    assert_eq!(bench.send(Method::POST, &reset, factory).await.0, 204);
    assert_eq!(bench.send(Method::PATCH, &secure, on).await.0, 200);
}

#[tokio::test]
async fn the_clock_of_the_bmc_is_set() {
    let bench = TestMachine::redfish("generic").await;
    let managers = bench.get("/redfish/v1/Managers").await;
    let manager = managers["Members"][0]["@odata.id"].as_str().unwrap().to_owned();
    let tag = bench.get(&manager).await["@odata.etag"].clone();
    bench.machine.misset_clock(-3600);
    assert_eq!(bench.get(&manager).await["@odata.etag"], tag, "a running clock changes no tag");
    let wanted = json!({"DateTime": "2026-02-28T23:30:00Z", "DateTimeLocalOffset": "+05:30"});
    assert_eq!(bench.send(Method::PATCH, &manager, wanted).await.0, 200);
    let shown = bench.get(&manager).await;
    assert_eq!(shown["DateTimeLocalOffset"], "+05:30");
    let text = shown["DateTime"].as_str().unwrap();
    assert!(text.starts_with("2026-03-01T05:0") && text.ends_with("+05:30"), "{text}");
    for wrong in [
        json!({"DateTime": "2026-02-28"}),
        json!({"DateTime": 1}),
        json!({"DateTimeLocalOffset": "east"}),
        json!({"Model": "x"}),
        json!({"Nothing": 1}),
    ] {
        assert_eq!(bench.send(Method::PATCH, &manager, wrong).await.0, 400);
    }
    assert_eq!(bench.get(&manager).await["DateTimeLocalOffset"], "+05:30");
}

#[tokio::test]
async fn a_poor_bmc_has_no_settings() {
    let bench = TestMachine::redfish("poor").await;
    let system = bench.get(&bench.system().await).await;
    assert!(system.get("Bios").is_none() && system.get("SecureBoot").is_none(), "{system}");
    let bios = part(&bench, "Bios").await;
    assert_eq!(bench.send(Method::GET, &bios, json!({})).await.0, 404);
}

#[tokio::test]
async fn settings_survive_a_restart_of_the_emulator() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let settings = part(&bench, "Bios/Settings").await;
    bench.send(Method::PATCH, &settings, attributes(json!({"AssetTag": "t1"}))).await;
    let kept = serde_json::to_string(&bench.machine.kept()).unwrap();
    let kept = serde_json::from_str(&kept).unwrap();
    let again = bmc_emulator::Machine::resumed(bench.machine.spec().clone(), kept);
    again.push_power_button();
    assert_eq!(again.bios()["AssetTag"], "t1");
}
