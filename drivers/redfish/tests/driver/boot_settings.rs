//! Tests of the boot mode and of secure boot over a real socket.

use std::collections::BTreeMap;

use axum::response::IntoResponse;
use bmc::BmcError;
use expect_test::expect;
use hardware::{BootMode, BootSetting, BootSettings, PowerState, SecureBootKeys};
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ReceivedRequest, empty, refusal, silent};

const DELL: &str = include_str!("trees/dell.json");
const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";
const SECURE_BOOT: &str = "/redfish/v1/Systems/System.Embedded.1/SecureBoot";

/// Dell's tree with this resource for secure boot.
fn with_secure_boot(secure: &Value) -> String {
    let mut tree: BTreeMap<String, Value> = serde_json::from_str(DELL).unwrap();
    tree.get_mut(SYSTEM).unwrap()["SecureBoot"] = json!({"@odata.id": SECURE_BOOT});
    tree.insert(SECURE_BOOT.to_owned(), secure.clone());
    serde_json::to_string(&tree).unwrap()
}

fn patched(asked: &ReceivedRequest) -> Option<axum::response::Response> {
    (asked.method == "PATCH").then(|| empty(204))
}

async fn request(fixture: &Fixture, wanted: BootSetting) -> Result<(), BmcError> {
    fixture.bmc(Auth::Basic).boot_settings.unwrap().request(wanted).await
}

async fn settings(fixture: &Fixture) -> Option<BootSettings> {
    let read = fixture.bmc(Auth::Basic).boot_settings.unwrap().read().await.unwrap();
    assert_eq!(read.power, PowerState::On);
    read.settings
}

#[tokio::test]
async fn both_settings_are_read_and_requested() {
    let tree = with_secure_boot(&json!({"SecureBootEnable": false}));
    let fixture = Fixture::serve(&tree, |asked, _| patched(asked)).await;
    let uefi = BootSettings { mode: Some(BootMode::Uefi), secure_boot: Some(false) };
    assert_eq!(settings(&fixture).await, Some(uefi));
    request(&fixture, BootSetting::SecureBoot(true)).await.unwrap();
    request(&fixture, BootSetting::Mode(BootMode::Bios)).await.unwrap();
    expect![[r#"
        PATCH /redfish/v1/Systems/System.Embedded.1/SecureBoot {"SecureBootEnable":true}
        PATCH /redfish/v1/Systems/System.Embedded.1 {"Boot":{"BootSourceOverrideMode":"Legacy"}}"#]]
    .assert_eq(&fixture.changes());
}

#[tokio::test]
async fn the_keys_of_secure_boot_are_replaced_as_the_bmc_lists() {
    let keys = async |actions: Value, wanted| {
        let tree = with_secure_boot(&json!({"SecureBootEnable": false, "Actions": actions}));
        let fixture =
            Fixture::serve(&tree, |asked, _| (asked.method == "POST").then(|| empty(204))).await;
        let settings = fixture.bmc(Auth::Basic).boot_settings.unwrap();
        let asked = settings.request_keys(wanted).await.map_err(|error| error.to_string());
        (asked, fixture.changes())
    };
    let target = format!("{SECURE_BOOT}/Actions/SecureBoot.ResetKeys");
    let plain = json!({"#SecureBoot.ResetKeys": {"target": target}});
    for (wanted, word) in [
        (SecureBootKeys::Factory, "ResetAllKeysToDefault"),
        (SecureBootKeys::None, "DeleteAllKeys"),
    ] {
        let sent = format!(r#"POST {target} {{"ResetKeysType":"{word}"}}"#);
        assert_eq!(keys(plain.clone(), wanted).await, (Ok(()), sent));
    }
    let listed = json!({"#SecureBoot.ResetKeys": {
        "target": target, "ResetKeysType@Redfish.AllowableValues": ["ResetAllKeysToDefault"],
    }});
    assert_eq!(keys(listed.clone(), SecureBootKeys::Factory).await.0, Ok(()));
    let cannot = "this BMC cannot replace the keys of secure boot: it ";
    for (actions, why) in
        [(listed, "does not list DeleteAllKeys"), (json!({}), "has no action ResetKeys")]
    {
        let refused = keys(actions, SecureBootKeys::None).await;
        assert_eq!(refused, (Err(format!("{cannot}{why}")), String::new()));
    }
}

#[tokio::test]
async fn a_bmc_without_secure_boot_says_so_and_is_not_asked() {
    let fixture = Fixture::serve(DELL, silent).await;
    let mode = BootSettings { mode: Some(BootMode::Uefi), secure_boot: None };
    assert_eq!(settings(&fixture).await, Some(mode));
    let error = request(&fixture, BootSetting::SecureBoot(true)).await.unwrap_err();
    let words = "this BMC cannot change secure boot: it has no SecureBoot resource";
    assert_eq!((error.to_string().as_str(), error.is_transient()), (words, false));
    assert_eq!(fixture.changes(), "");
}

#[tokio::test]
async fn supermicro_without_a_licence_tells_no_secure_boot() {
    let tree = with_secure_boot(&json!({}));
    let fixture = Fixture::serve(&tree, |asked, _| {
        let refused = || refusal(403, "SMC.1.0.OemLicenseNotPassed", "no license");
        (asked.path == SECURE_BOOT).then(refused)
    })
    .await;
    assert_eq!(settings(&fixture).await.map(|settings| settings.secure_boot), Some(None));
}

#[tokio::test]
async fn secure_boot_needs_the_boot_mode_uefi() {
    let tree = with_secure_boot(&json!({"SecureBootEnable": false}))
        .replace(r#""BootSourceOverrideMode":"UEFI""#, r#""BootSourceOverrideMode":"Legacy""#);
    let fixture = Fixture::serve(&tree, |asked, _| patched(asked)).await;
    let error = request(&fixture, BootSetting::SecureBoot(true)).await.unwrap_err().to_string();
    assert!(error.contains("secure boot needs the boot mode uefi"), "{error}");
    request(&fixture, BootSetting::SecureBoot(false)).await.unwrap();
    assert_eq!(fixture.count("PATCH", SECURE_BOOT), 1);
}

#[tokio::test]
async fn a_bmc_that_fails_to_show_secure_boot_still_tells_the_power_state() {
    let tree = with_secure_boot(&json!({}));
    let fixture =
        Fixture::serve(&tree, |asked, _| (asked.path == SECURE_BOOT).then(|| empty(500))).await;
    let bmc = fixture.bmc(Auth::Basic).boot_settings.unwrap();
    let read = bmc.read_once().await.unwrap();
    assert_eq!((read.power, read.settings), (PowerState::On, None));
    assert!(bmc.read().await.unwrap_err().is_transient());
}

#[tokio::test]
async fn the_power_state_alone_costs_one_request() {
    let fixture = Fixture::serve(&with_secure_boot(&json!({})), |_, _| None).await;
    let bmc = fixture.bmc(Auth::Basic).boot_settings.unwrap();
    let before = bmc.read_once().await.unwrap();
    let asked = fixture.count("GET", SECURE_BOOT);
    let read = bmc.read_power_once().await.unwrap();
    assert_eq!((read.power, read.health), (before.power, before.health));
    assert_eq!(read.settings, None);
    assert_eq!(fixture.count("GET", SECURE_BOOT), asked);
}

#[tokio::test]
async fn the_task_of_a_change_at_the_next_start_is_not_awaited() {
    let tree = with_secure_boot(&json!({"SecureBootEnable": false}));
    let fixture = Fixture::serve(&tree, |asked, _| match asked.method.as_str() {
        "PATCH" => {
            let monitor = [("location", "/redfish/v1/TaskService/Monitors/1")];
            Some((monitor, empty(202)).into_response())
        }
        _ if asked.path.contains("/Monitors/") => Some(empty(202)),
        _ => None,
    })
    .await;
    request(&fixture, BootSetting::SecureBoot(true)).await.unwrap();
}
