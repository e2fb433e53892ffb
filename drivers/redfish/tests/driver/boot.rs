//! Tests of the boot override over a real socket.

use crate::fixture::{Fixture, ReceivedRequest, empty, json, refusal, silent};
use axum::response::IntoResponse;
use bmc::BmcError;
use expect_test::expect;
use hardware::{BootDevice, BootMode, BootOverride, Persistence};
use redfish::Auth;
use serde_json::json;

const DELL: &str = include_str!("trees/dell.json");
const HPE: &str = include_str!("trees/hpe.json");
const SUPERMICRO: &str = include_str!("trees/supermicro.json");
const DELL_SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";

const PXE: BootOverride = BootOverride {
    device: BootDevice::Pxe,
    persistence: Persistence::Once,
    mode: Some(BootMode::Uefi),
};

fn patched(asked: &ReceivedRequest) -> Option<axum::response::Response> {
    (asked.method == "PATCH").then(|| empty(200))
}

#[tokio::test]
async fn an_override_is_patched_into_the_system() {
    let fixture = Fixture::serve(DELL, |asked, _| patched(asked)).await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    expect![[r#"PATCH /redfish/v1/Systems/System.Embedded.1 {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}}"#]].assert_eq(&fixture.changes());
}

#[tokio::test]
async fn supermicro_boots_from_its_usb_cd() {
    let fixture = Fixture::serve(SUPERMICRO, |asked, _| patched(asked)).await;
    let cdrom = BootOverride { device: BootDevice::Cdrom, mode: None, ..PXE };
    fixture.bmc(Auth::Basic).boot.set(cdrom).await.unwrap();
    expect![[r#"PATCH /redfish/v1/Systems/1 {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UsbCd"}}"#]].assert_eq(&fixture.changes());
}

const IDRAC: &str = "/redfish/v1/Managers/iDRAC.Embedded.1";

/// An iDRAC with its action, whose job ends as `state`.
async fn idrac(state: &'static str) -> Fixture {
    Fixture::serve(DELL, move |asked, tree| {
        let target = format!("{IDRAC}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration");
        let action = json!({"#OemManager.ImportSystemConfiguration": {"target": target}});
        tree.get_mut(IDRAC).unwrap()["Actions"] = json!({"Oem": action});
        let job = "/redfish/v1/TaskService/Tasks/JID_1";
        match (asked.method.as_str(), asked.path.as_str()) {
            ("POST", _) => {
                Some(([("location", job), ("retry-after", "0")], empty(202)).into_response())
            }
            (_, path) if path == job => Some(json(200, json!({"TaskState": state, "Messages": [{"MessageId": "IDRAC.2.8.SYS051", "Message": "the job says so"}]}))),
            _ => patched(asked),
        }
    })
    .await
}

#[tokio::test]
async fn an_idrac_boots_the_virtual_cd_by_its_own_action() {
    let cdrom = BootOverride { device: BootDevice::Cdrom, mode: None, ..PXE };
    let fixture = idrac("Completed").await;
    fixture.bmc(Auth::Basic).boot.set(cdrom).await.unwrap();
    expect![[r#"POST /redfish/v1/Managers/iDRAC.Embedded.1/Actions/Oem/EID_674_Manager.ImportSystemConfiguration {"ImportBuffer":"<SystemConfiguration><Component FQDD=\"iDRAC.Embedded.1\"><Attribute Name=\"ServerBoot.1#BootOnce\">Enabled</Attribute><Attribute Name=\"ServerBoot.1#FirstBootDevice\">VCD-DVD</Attribute></Component></SystemConfiguration>","ShareParameters":{"Target":["ALL"]}}"#]].assert_eq(&fixture.changes());

    let fixture = idrac("Exception").await;
    let error = fixture.bmc(Auth::Basic).boot.set(cdrom).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { .. }), "{error:?}");
    // Other devices are overridden as the standard says.
    let fixture = idrac("Completed").await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    assert!(fixture.changes().starts_with("PATCH "), "{}", fixture.changes());
}

#[tokio::test]
async fn an_unlisted_value_is_unsupported() {
    let fixture = Fixture::serve(SUPERMICRO, silent).await;
    let http = BootOverride { device: BootDevice::Http, ..PXE };
    let error = fixture.bmc(Auth::Basic).boot.set(http).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot boot from uefihttp");
    let supported = fixture.bmc(Auth::Basic).boot.supported().await.unwrap();
    assert_eq!(supported, [BootDevice::Pxe, BootDevice::Disk, BootDevice::Cdrom, BootDevice::Bios]);
}

#[tokio::test]
async fn a_bmc_without_continuous_overrides_and_lists_is_recognized() {
    let fixture = Fixture::serve(DELL, |asked, _| {
        let value = "the value of BootSourceOverrideEnabled is not in the list";
        (asked.method == "PATCH").then(|| refusal(400, "Base.1.8.PropertyValueNotInList", value))
    })
    .await;
    let always = BootOverride { persistence: Persistence::Continuous, ..PXE };
    let error = fixture.bmc(Auth::Basic).boot.set(always).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot boot from pxe for more than one boot");
}

#[tokio::test]
async fn an_override_is_read_back() {
    let fixture = Fixture::serve(HPE, silent).await;
    let found = fixture.bmc(Auth::Basic).boot.get().await.unwrap();
    assert_eq!(found, Some(BootOverride { device: BootDevice::Http, ..PXE }));
    let fixture = Fixture::serve(DELL, silent).await;
    assert_eq!(fixture.bmc(Auth::Basic).boot.get().await.unwrap(), None);
}

#[tokio::test]
async fn an_override_in_the_settings_is_changed_there() {
    let settings = |holds: bool| {
        move |asked: &ReceivedRequest,
              tree: &mut std::collections::BTreeMap<_, serde_json::Value>| {
            let link = json!({"SettingsObject": {"@odata.id": format!("{DELL_SYSTEM}/Settings")}});
            tree.get_mut(DELL_SYSTEM).unwrap()["@Redfish.Settings"] = link;
            let boot =
                json!({"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Once"});
            let body = if holds { json!({"Boot": boot}) } else { json!({"Attributes": {}}) };
            let known = asked.method == "GET" && asked.path.ends_with("/Settings");
            if known { Some(json(200, body)) } else { patched(asked) }
        }
    };
    let fixture = Fixture::serve(DELL, settings(true)).await;
    let boot = fixture.bmc(Auth::Basic).boot;
    boot.set(PXE).await.unwrap();
    assert_eq!(fixture.count("PATCH", &format!("{DELL_SYSTEM}/Settings")), 1);
    assert_eq!(boot.get().await.unwrap().map(|found| found.device), Some(BootDevice::Disk));

    let fixture = Fixture::serve(DELL, settings(false)).await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    assert_eq!(fixture.count("PATCH", DELL_SYSTEM), 1);
}

/// A BMC whose system has the tag `"v1"` at the first read and `second` afterwards, and that accepts only `wanted`.
async fn tagged(second: &'static str, wanted: &'static str) -> Fixture {
    let mut reads = 0;
    Fixture::serve(DELL, move |asked, tree| match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", DELL_SYSTEM) => {
            reads += 1;
            let tag = if reads == 1 { "\"v1\"" } else { second };
            let body = tree[DELL_SYSTEM].clone();
            Some(([("etag", tag)], json(200, body)).into_response())
        }
        ("PATCH", _) if asked.header("if-match") == Some(wanted) => Some(empty(204)),
        ("PATCH", _) => Some(empty(412)),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_change_names_the_version_it_read() {
    let fixture = tagged("\"v1\"", "\"v1\"").await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    assert_eq!(fixture.count("PATCH", DELL_SYSTEM), 1);
}

#[tokio::test]
async fn an_outdated_tag_is_read_again_once() {
    let fixture = tagged("\"v2\"", "\"v2\"").await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    assert_eq!(fixture.count("PATCH", DELL_SYSTEM), 2);

    let fixture = tagged("\"v2\"", "\"v3\"").await;
    let error = fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { transient: true, .. }), "{error:?}");
    assert_eq!(fixture.count("PATCH", DELL_SYSTEM), 2);
}

#[tokio::test]
async fn a_weak_tag_is_sent_as_a_strong_one_the_second_time() {
    let fixture = tagged("W/\"v1\"", "\"v1\"").await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    let fixture = tagged("W/\"v2\"", "\"v2\"").await;
    fixture.bmc(Auth::Basic).boot.set(PXE).await.unwrap();
    assert_eq!(fixture.count("PATCH", DELL_SYSTEM), 2);
}
