//! Differences between families of BMCs, each defined by its profile.

use std::time::Duration;

use bmc_emulator::{BmcKind, BootDevice, Firmware, OverrideDuration, Request};
use reqwest::Method;
use serde_json::json;

use crate::rack::{TestMachine, spec};

const PXE_ONCE: &str =
    r#"{"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}"#;

fn pxe_once() -> serde_json::Value {
    serde_json::from_str(PXE_ONCE).unwrap()
}

#[tokio::test]
async fn an_idrac_boots_the_virtual_cd_by_an_import_of_its_configuration() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let system = bench.system().await;
    let cd =
        json!({"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}});
    assert_eq!(bench.send(Method::PATCH, &system, cd).await.0, 200);
    assert_eq!(bench.machine.take_boot_device().device, None, "the drive in the machine is empty");

    let import = "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Oem/EID_674_Manager.ImportSystemConfiguration";
    let configuration = |device: &str| {
        let attributes = format!(
            r#"<Attribute Name="ServerBoot.1#BootOnce">Enabled</Attribute><Attribute Name="ServerBoot.1#FirstBootDevice">{device}</Attribute>"#
        );
        let component = format!(r#"<Component FQDD="iDRAC.Embedded.1">{attributes}</Component>"#);
        json!({
            "ShareParameters": {"Target": ["ALL"]},
            "ImportBuffer": format!("<SystemConfiguration>{component}</SystemConfiguration>"),
        })
    };
    let (status, task) = bench.send(Method::POST, import, configuration("VCD-DVD")).await;
    assert_eq!((status, &task["Name"]), (202, &json!("Import")));
    let (status, _) = bench.send(Method::POST, import, configuration(" VCD-DVD ")).await;
    assert_eq!(status, 400);
    let cd = bmc_emulator::BootDevice::Cdrom;
    assert_eq!(bench.machine.take_boot_device().device, Some(cd));
    assert_eq!(bench.machine.take_boot_device().device, None);
}

#[tokio::test]
async fn an_idrac_refuses_the_current_power_state() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let reset = "/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset";
    let (status, body) = bench.send(Method::POST, reset, json!({"ResetType": "ForceOff"})).await;
    assert_eq!(status, 409);
    assert_eq!(body["error"]["@Message.ExtendedInfo"][0]["MessageId"], "IDRAC.2.8.PSU501");
    assert_eq!(bench.send(Method::POST, reset, json!({"ResetType": "On"})).await.0, 204);
    assert_eq!(bench.send(Method::POST, reset, json!({"ResetType": "On"})).await.0, 409);
    assert_eq!(bench.machine.power().borrow().generation, 1);
}

#[tokio::test]
async fn an_ilo_answers_a_success_message() {
    let bench = TestMachine::redfish("hpe-ilo").await;
    let reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset/";
    let (status, body) = bench.send(Method::POST, reset, json!({"ResetType": "On"})).await;
    assert_eq!((status, &body["error"]["code"]), (200, &json!("Base.1.13.Success")));
}

#[tokio::test]
async fn a_megarac_takes_boot_changes_in_its_settings_with_a_tag() {
    let bench = TestMachine::redfish("ami-megarac").await;
    let system = bench.get("/redfish/v1/Systems/Self").await;
    let settings = system["@Redfish.Settings"]["SettingsObject"]["@odata.id"].as_str().unwrap();

    let etag = system["@odata.etag"].as_str().unwrap();
    let refused = bench.ask(Method::PATCH, "/redfish/v1/Systems/Self").header("if-match", etag);
    assert_eq!(refused.json(&pxe_once()).send().await.unwrap().status(), 400);

    assert_eq!(bench.send(Method::PATCH, settings, pxe_once()).await.0, 428);
    let stale = bench.ask(Method::PATCH, settings).header("if-match", "\"0\"");
    assert_eq!(stale.json(&pxe_once()).send().await.unwrap().status(), 412);

    let response = bench.ask(Method::GET, settings).send().await.unwrap();
    let etag = response.headers()["etag"].clone();
    assert_eq!(
        response.json::<serde_json::Value>().await.unwrap()["@odata.etag"],
        etag.to_str().unwrap()
    );
    let fresh = bench.ask(Method::PATCH, settings).header("if-match", &etag);
    assert_eq!(fresh.json(&pxe_once()).send().await.unwrap().status(), 200);
    let again = bench.ask(Method::PATCH, settings).header("if-match", &etag);
    assert_eq!(
        again.json(&pxe_once()).send().await.unwrap().status(),
        412,
        "the tag changed with the override"
    );
    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Pxe));
}

#[tokio::test]
async fn a_megarac_resets_in_a_task() {
    let bench = TestMachine::redfish("ami-megarac").await;
    let reset = "/redfish/v1/Systems/Self/Actions/ComputerSystem.Reset";
    bench.machine.faults().update(|faults| faults.power_delay = Some(Duration::from_millis(300)));
    let response =
        bench.ask(Method::POST, reset).json(&json!({"ResetType": "On"})).send().await.unwrap();
    assert_eq!(response.status(), 202);
    let monitor = response.headers()["location"].to_str().unwrap().to_owned();
    let task = response.json::<serde_json::Value>().await.unwrap();
    assert_eq!(task["TaskState"], "Running");
    assert_eq!(bench.ask(Method::GET, &monitor).send().await.unwrap().status(), 202);

    let mut power = bench.machine.power();
    power.wait_for(|power| power.on).await.unwrap();
    let finished =
        async { while bench.ask(Method::GET, &monitor).send().await.unwrap().status() == 202 {} };
    tokio::time::timeout(Duration::from_secs(10), finished).await.expect("the task finishes");
    let task = bench.get(task["@odata.id"].as_str().unwrap()).await;
    assert_eq!(task["TaskState"], "Completed");
}

#[tokio::test]
async fn reset_values_may_be_in_an_action_info() {
    let bench = TestMachine::redfish("supermicro").await;
    let system = bench.get("/redfish/v1/Systems/1").await;
    let action = &system["Actions"]["#ComputerSystem.Reset"];
    assert!(action.get("ResetType@Redfish.AllowableValues").is_none());
    let info = bench.get(action["@Redfish.ActionInfo"].as_str().unwrap()).await;
    assert_eq!(info["Parameters"][0]["AllowableValues"][0], "On");
}

#[tokio::test]
async fn a_poor_bmc_leaves_out_optional_parts() {
    let bench = TestMachine::redfish("poor").await;
    let system = bench.get("/redfish/v1/Systems/system").await;
    for absent in ["Links", "Storage", "EthernetInterfaces", "Processors", "@odata.etag"] {
        assert!(system.get(absent).is_none(), "{absent}");
    }
    assert!(system["Boot"].get("BootSourceOverrideMode").is_none());
    let root = bench.get("/redfish/v1/").await;
    assert!(root.get("SessionService").is_none());
    assert_eq!(bench.send(Method::PATCH, "/redfish/v1/Systems/system", pxe_once()).await.0, 200);
}

#[tokio::test]
async fn http_boot_is_not_offered_to_a_bios() {
    let mut spec = spec("old", BmcKind::Redfish, "generic");
    spec.firmware = Firmware::Bios;
    let bench = TestMachine::of(spec).await;
    let boot = json!({"Boot": {"BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": "Once"}});
    assert_eq!(bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await.0, 400);
}

#[tokio::test]
async fn http_boot_keeps_its_url() {
    let bench = TestMachine::redfish("generic").await;
    let boot = json!({"Boot": {
        "BootSourceOverrideTarget": "UefiHttp",
        "BootSourceOverrideEnabled": "Once",
        "BootSourceOverrideMode": "UEFI",
        "HttpBootUri": "http://10.0.0.1/boot.efi",
    }});
    assert_eq!(bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await.0, 200);
    let choice = bench.machine.take_boot_device();
    assert_eq!(choice.device, Some(BootDevice::Http));
    assert_eq!(choice.mode, Some(Firmware::Uefi));
    assert_eq!(choice.http_uri.unwrap().as_str(), "http://10.0.0.1/boot.efi");
}

#[tokio::test]
async fn an_image_goes_into_the_drive_and_out_again() {
    let bench = TestMachine::redfish("generic").await;
    let drive = "/redfish/v1/Systems/1/VirtualMedia/Cd";
    let insert = format!("{drive}/Actions/VirtualMedia.InsertMedia");
    let eject = format!("{drive}/Actions/VirtualMedia.EjectMedia");
    assert_eq!(bench.send(Method::POST, &insert, json!({"Image": "not a url"})).await.0, 400);
    let image =
        json!({"Image": "http://10.0.0.1/ramdisk.iso", "Inserted": true, "WriteProtected": true});
    assert_eq!(bench.send(Method::POST, &insert, image).await.0, 204);
    let shown = bench.get(drive).await;
    assert_eq!((&shown["Inserted"], &shown["ImageName"]), (&json!(true), &json!("ramdisk.iso")));
    assert_eq!(bench.machine.media().unwrap().as_str(), "http://10.0.0.1/ramdisk.iso");

    assert_eq!(bench.send(Method::POST, &eject, json!({})).await.0, 204);
    assert_eq!(bench.machine.media(), None);
    assert_eq!(bench.machine.log().last().unwrap().request, Request::EjectMedia);
}

#[tokio::test]
async fn a_full_drive_may_refuse_a_second_image() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let insert =
        "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia";
    let image = json!({"Image": "http://10.0.0.1/a.iso"});
    assert_eq!(bench.send(Method::POST, insert, image.clone()).await.0, 204);
    assert_eq!(bench.send(Method::POST, insert, image).await.0, 500);
}

#[tokio::test]
async fn an_xcc_changes_media_by_patch_with_a_tag() {
    let bench = TestMachine::redfish("lenovo-xcc").await;
    let drive = "/redfish/v1/Managers/1/VirtualMedia/EXT1";
    let shown = bench.get(drive).await;
    assert!(shown.get("Actions").is_none());
    let image = json!({"Image": "http://10.0.0.1/a.iso", "Inserted": true});
    assert_eq!(bench.send(Method::PATCH, drive, image.clone()).await.0, 428);
    let patch = bench.ask(Method::PATCH, drive).header("if-match", "*").json(&image);
    assert_eq!(patch.send().await.unwrap().status(), 200);
    assert!(bench.machine.media().is_some());
    let patch =
        bench.ask(Method::PATCH, drive).header("if-match", "*").json(&json!({"Image": null}));
    assert_eq!(patch.send().await.unwrap().status(), 200);
    assert_eq!(bench.machine.media(), None);
    let boot = json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}});
    let patch =
        bench.ask(Method::PATCH, "/redfish/v1/Systems/1").header("if-match", "*").json(&boot);
    assert_eq!(patch.send().await.unwrap().status(), 400, "this family has no continuous override");
}

#[tokio::test]
async fn both_faces_act_on_one_chassis() {
    let mut spec = spec("both", BmcKind::Redfish, "generic");
    spec.bmc.also_ipmi = Some("127.0.0.1:0".parse().unwrap());
    let bench = TestMachine::of(spec).await;
    assert!(bench.at.ipmi.is_some());
    assert_eq!(bench.send(Method::PATCH, "/redfish/v1/Systems/1", pxe_once()).await.0, 200);

    let port = bench.at.ipmi.unwrap().port().to_string();
    let reported = tokio::task::spawn_blocking(move || {
        let mut command = std::process::Command::new("ipmitool");
        command.args([
            "-I",
            "lanplus",
            "-H",
            "127.0.0.1",
            "-U",
            crate::rack::USER,
            "-P",
            crate::rack::PASSWORD,
        ]);
        command.args(["-C", "17", "-p", &port, "chassis", "bootparam", "get", "5"]).output()
    });
    let reported =
        reported.await.unwrap().expect("ipmitool runs; it is in Debian's package `ipmitool`");
    let reported = String::from_utf8_lossy(&reported.stdout).into_owned();
    assert!(reported.contains("Force PXE") && reported.contains("Boot Flag Valid"), "{reported}");
    assert_eq!(
        bench.machine.log()[0].request,
        Request::Boot(BootDevice::Pxe, OverrideDuration::Once)
    );
}
