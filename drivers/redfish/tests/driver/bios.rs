//! Tests of BIOS settings over a real socket.

use std::collections::BTreeMap;

use axum::response::IntoResponse;
use bmc::BmcError;
use expect_test::expect;
use hardware::BiosValue;
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ReceivedRequest, empty, silent};

const DELL: &str = include_str!("trees/dell.json");
const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";
const BIOS: &str = "/redfish/v1/Systems/System.Embedded.1/Bios";
const SETTINGS: &str = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings";
const RESET: &str = "/redfish/v1/Systems/System.Embedded.1/Bios/Actions/Bios.ResetBios";
const REGISTRIES: &str = "/redfish/v1/Registries";

/// Dell's tree with BIOS settings and the registry that describes them.
fn tree() -> String {
    let mut tree: BTreeMap<String, Value> = serde_json::from_str(DELL).unwrap();
    tree.get_mut(SYSTEM).unwrap()["Bios"] = json!({"@odata.id": BIOS});
    tree.get_mut("/redfish/v1").unwrap()["Registries"] = json!({"@odata.id": REGISTRIES});
    let link = |name: &str| json!({"@odata.id": format!("{REGISTRIES}/{name}")});
    let file = |name: &str, uri: &str| {
        let locations = json!([{"Language": "zh", "Uri": "/x"}, {"Language": "en-US", "Uri": uri}]);
        json!({"@odata.id": format!("{REGISTRIES}/{name}"), "Id": name, "Location": locations})
    };
    let id = "BiosAttributeRegistry.v1_0_3";
    let attribute =
        json!({"AttributeName": "Sata", "Type": "Enumeration", "Value": [{"ValueName": "Ahci"}]});
    let bios = json!({
        "AttributeRegistry": id,
        "Attributes": {"Sata": "Ahci", "Delay": 3, "Quiet": true},
        "@Redfish.Settings": {
            "SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": ["OnReset"],
            "Messages": [
                {"Message": "Sata was not taken.", "MessageSeverity": "Warning"},
                {"Message": "Delay was taken.", "MessageSeverity": "OK"},
            ],
        },
        "Actions": {"#Bios.ResetBios": {"target": RESET}},
    });
    let more = [
        (BIOS, bios),
        (SETTINGS, json!({"@odata.etag": "\"s1\"", "Attributes": {"Delay": 4}})),
        (REGISTRIES, json!({"Members": [link("Messages"), link("BiosRegistryFile")]})),
        ("/redfish/v1/Registries/Messages", file("Messages", "/redfish/v1/messages")),
        ("/redfish/v1/Registries/BiosRegistryFile", file(id, "/redfish/v1/bios.json")),
        ("/redfish/v1/bios.json", json!({"RegistryEntries": {"Attributes": [attribute]}})),
    ];
    tree.extend(more.map(|(path, document)| (path.to_owned(), document)));
    serde_json::to_string(&tree).unwrap()
}

fn accepts(asked: &ReceivedRequest) -> Option<axum::response::Response> {
    (asked.method != "GET").then(|| empty(204))
}

fn sata(value: &str) -> BTreeMap<String, BiosValue> {
    [("Sata".to_owned(), BiosValue::Text(value.to_owned()))].into()
}

#[tokio::test]
async fn values_and_descriptions_are_read() {
    let fixture = Fixture::serve(&tree(), silent).await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    let values = bios.values().await.unwrap();
    assert_eq!(values.current["Quiet"], BiosValue::Boolean(true));
    assert_eq!(values.current.len(), 3);
    assert_eq!(values.pending, [("Delay".to_owned(), BiosValue::Integer(4))].into());
    assert_eq!(values.messages, ["Sata was not taken."]);
    let attributes = bios.attributes().await.unwrap();
    assert_eq!(attributes["Sata"].allowable_values, ["Ahci"]);
    assert_eq!(fixture.count("GET", "/redfish/v1/messages"), 0, "the nearest name is read first");
}

#[tokio::test]
async fn values_are_patched_into_the_settings_resource_with_its_tag() {
    let fixture = Fixture::serve(&tree(), |asked, _| accepts(asked)).await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    let values = [
        ("Sata".to_owned(), BiosValue::Text("Ahci".to_owned())),
        ("Delay".to_owned(), BiosValue::Integer(7)),
        ("Quiet".to_owned(), BiosValue::Boolean(false)),
    ];
    bios.request(&values.into()).await.unwrap();
    bios.request_reset().await.unwrap();
    expect![[r##"
        PATCH /redfish/v1/Systems/System.Embedded.1/Bios/Settings {"@Redfish.SettingsApplyTime":{"@odata.type":"#Settings.v1_0_0.PreferredApplyTime","ApplyTime":"OnReset"},"Attributes":{"Delay":7,"Quiet":false,"Sata":"Ahci"}}
        POST /redfish/v1/Systems/System.Embedded.1/Bios/Actions/Bios.ResetBios {}"##]]
    .assert_eq(&fixture.changes());
    let asked = fixture.asked();
    let patch = asked.iter().find(|asked| asked.method == "PATCH").unwrap();
    assert_eq!(patch.header("if-match"), Some("\"s1\""));
}

#[tokio::test]
async fn settings_that_changed_meanwhile_are_read_again_once() {
    let refusing = |times: usize| {
        let mut refused = 0;
        move |asked: &ReceivedRequest, _: &mut BTreeMap<String, Value>| {
            if asked.method != "PATCH" {
                return None;
            }
            refused += 1;
            Some(if refused <= times { empty(412) } else { empty(204) })
        }
    };
    let fixture = Fixture::serve(&tree(), refusing(1)).await;
    fixture.bmc(Auth::Basic).bios.unwrap().request(&sata("Ahci")).await.unwrap();
    let fixture = Fixture::serve(&tree(), refusing(9)).await;
    let error = fixture.bmc(Auth::Basic).bios.unwrap().request(&sata("Ahci")).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { transient: true, .. }), "{error:?}");
    assert_eq!(fixture.count("PATCH", SETTINGS), 2);
}

#[tokio::test]
async fn a_busy_bmc_is_left_alone_as_long_as_it_asks() {
    let fixture = Fixture::serve(&tree(), |asked, _| {
        let busy = || ([("retry-after", "30")], empty(503)).into_response();
        (asked.path == SETTINGS).then(busy)
    })
    .await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    let error = bios.values().await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("retry in 30 s"), "{error}");
    let asked = fixture.asked().len();
    assert!(bios.values().await.unwrap_err().is_transient());
    assert_eq!(fixture.asked().len(), asked, "nothing is sent meanwhile");
}

#[tokio::test]
async fn a_bmc_without_bios_settings_says_so() {
    let fixture = Fixture::serve(DELL, silent).await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    let words = "this BMC cannot show BIOS settings: it has no Bios resource";
    assert_eq!(bios.values().await.unwrap_err().to_string(), words);
    assert_eq!(bios.request_reset().await.unwrap_err().to_string(), words);
    assert_eq!(fixture.changes(), "");
}

#[tokio::test]
async fn a_bmc_that_cannot_change_its_settings_is_not_asked() {
    let tree = tree().replace("SettingsObject", "Nothing").replace("#Bios.ResetBios", "#Nothing");
    let fixture = Fixture::serve(&tree, |asked, _| accepts(asked)).await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    let error = bios.request(&sata("Ahci")).await.unwrap_err().to_string();
    assert_eq!(error, "this BMC cannot change BIOS settings: it has no settings resource");
    let error = bios.request_reset().await.unwrap_err().to_string();
    assert_eq!(error, "this BMC cannot reset BIOS settings: it has no action ResetBios");
    assert_eq!(fixture.changes(), "");
}

#[tokio::test]
async fn a_missing_registry_describes_nothing() {
    let tree = tree().replace("/redfish/v1/bios.json", "/redfish/v1/nowhere.json");
    let fixture = Fixture::serve(&tree, |asked, _| {
        (asked.path.ends_with("nowhere.json")).then(|| empty(404))
    })
    .await;
    let bios = fixture.bmc(Auth::Basic).bios.unwrap();
    assert!(bios.attributes().await.unwrap().is_empty());
}
