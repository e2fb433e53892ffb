//! Tests of virtual media and the identify light over a real socket.

use crate::fixture::{Fixture, empty, refusal};
use bmc::{BmcError, IdentifyLight};
use expect_test::expect;
use hardware::MediaKind;
use redfish::Auth;
use serde_json::json;
use url::Url;

const DELL: &str = include_str!("trees/dell.json");
const HPE: &str = include_str!("trees/hpe.json");
const SUPERMICRO: &str = include_str!("trees/supermicro.json");
const DELL_CD: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD";
const HPE_CD: &str = "/redfish/v1/Systems/1/VirtualMedia/2";

fn image() -> Url {
    "http://10.0.0.1/ramdisk.iso".parse().unwrap()
}

/// A BMC whose drive carries out each action.
async fn obedient(tree: &str, drive: &'static str) -> Fixture {
    Fixture::serve(tree, move |asked, tree| {
        let drive = tree.get_mut(drive.trim_end_matches('/')).unwrap();
        if asked.path.contains("InsertMedia") {
            drive["Image"] = asked.body["Image"].clone();
            drive["Inserted"] = json!(true);
        } else if asked.path.contains("EjectMedia") {
            drive["Image"] = json!(null);
            drive["Inserted"] = json!(false);
        }
        (asked.method == "POST").then(|| empty(204))
    })
    .await
}

#[tokio::test]
async fn an_image_goes_into_the_cd_drive_once_and_out_once() {
    let fixture = obedient(DELL, DELL_CD).await;
    let media = fixture.bmc(Auth::Basic).media.unwrap();
    media.eject().await.unwrap();
    media.insert(&image()).await.unwrap();
    media.insert(&image()).await.unwrap();
    let held = media.content().await.unwrap();
    assert_eq!((held.inserted, held.image), (true, Some(image().to_string())));
    assert!(held.media_types.contains(&"CD".to_owned()), "{:?}", held.media_types);
    media.eject().await.unwrap();
    media.eject().await.unwrap();
    assert!(!media.content().await.unwrap().inserted);
    expect![[r#"
        POST /redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia {"Image":"http://10.0.0.1/ramdisk.iso"}
        POST /redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.EjectMedia {}"#]].assert_eq(&fixture.changes());
}

#[tokio::test]
async fn drives_are_emptied_by_their_kind() {
    let fixture = obedient(HPE, HPE_CD).await;
    let media = fixture.bmc(Auth::Basic).media.unwrap();
    media.eject_all(Some(MediaKind::Usb)).await.unwrap();
    assert!(media.content().await.unwrap().inserted, "a stick is no CD");
    media.eject_all(Some(MediaKind::Cd)).await.unwrap();
    assert!(!media.content().await.unwrap().inserted);
    media.insert(&image()).await.unwrap();
    media.eject_all(None).await.unwrap();
    assert!(!media.content().await.unwrap().inserted);
    media.eject_all(None).await.unwrap();
    let ejected = fixture.asked().into_iter().filter(|asked| asked.path.contains("Eject"));
    assert_eq!(ejected.count(), 2);
}

#[tokio::test]
async fn a_kind_without_a_drive_is_refused() {
    let fixture = obedient(SUPERMICRO, "/redfish/v1/Managers/1/VirtualMedia/CD1").await;
    let media = fixture.bmc(Auth::Basic).media.unwrap();
    let error = media.eject_all(Some(MediaKind::Floppy)).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot offer a virtual floppy drive");
}

#[tokio::test]
async fn another_image_is_taken_out_first() {
    let fixture = obedient(HPE, HPE_CD).await;
    fixture.bmc(Auth::Basic).media.unwrap().insert(&image()).await.unwrap();
    expect![[r#"
        POST /redfish/v1/Systems/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia/ {}
        POST /redfish/v1/Systems/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia/ {"Image":"http://10.0.0.1/ramdisk.iso"}"#]].assert_eq(&fixture.changes());
}

#[tokio::test]
async fn the_drive_is_searched_for_once() {
    let fixture = obedient(SUPERMICRO, "/redfish/v1/Managers/1/VirtualMedia/CD1").await;
    let media = fixture.bmc(Auth::Basic).media.unwrap();
    media.insert(&image()).await.unwrap();
    media.eject().await.unwrap();
    assert_eq!(fixture.count("GET", "/redfish/v1/Managers/1/VirtualMedia"), 1);
}

#[tokio::test]
async fn a_parameter_that_the_bmc_misses_is_added() {
    let fixture = Fixture::serve(DELL, |asked, _| {
        let missing = ["TransferProtocolType", "TransferMethod", "UserName"]
            .into_iter()
            .find(|name| asked.body.get(name).is_none());
        (asked.method == "POST").then(|| match missing {
            Some(name) => refusal(
                400,
                "Base.1.8.ActionParameterMissing",
                &format!("the action requires the parameter {name}"),
            ),
            None => empty(204),
        })
    })
    .await;
    fixture.bmc(Auth::Basic).media.unwrap().insert(&image()).await.unwrap();
    let last = fixture.asked().pop().unwrap().body;
    assert_eq!(
        last,
        json!({"Image": image(), "TransferProtocolType": "HTTP", "TransferMethod": "Stream",
            "UserName": "none", "Password": "none"})
    );
}

#[tokio::test]
async fn an_image_that_is_refused_is_an_error() {
    let fixture = Fixture::serve(DELL, |asked, _| {
        (asked.method == "POST")
            .then(|| refusal(400, "IDRAC.2.8.VRM0012", "cannot reach the image"))
    })
    .await;
    let error = fixture.bmc(Auth::Basic).media.unwrap().insert(&image()).await.unwrap_err();
    assert!(error.to_string().ends_with("400 Bad Request: cannot reach the image"), "{error}");
}

#[tokio::test]
async fn a_drive_without_actions_is_patched() {
    let fixture = Fixture::serve(DELL, |asked, tree| {
        let drive = tree.get_mut(DELL_CD).unwrap();
        drive.as_object_mut().unwrap().remove("Actions");
        if asked.method == "PATCH" {
            drive["Image"] = asked.body["Image"].clone();
            drive["Inserted"] = asked.body["Inserted"].clone();
        }
        (asked.method == "PATCH").then(|| empty(204))
    })
    .await;
    let media = fixture.bmc(Auth::Basic).media.unwrap();
    media.insert(&image()).await.unwrap();
    media.eject().await.unwrap();
    expect![[r#"
        PATCH /redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD {"Image":"http://10.0.0.1/ramdisk.iso","Inserted":true,"WriteProtected":true}
        PATCH /redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD {"Image":null,"Inserted":false}"#]].assert_eq(&fixture.changes());
}

#[tokio::test]
async fn an_eject_that_is_refused_is_forgiven_when_the_drive_is_empty() {
    for (empties, succeeds) in [(true, true), (false, false)] {
        let fixture = Fixture::serve(HPE, move |asked, tree| {
            (asked.method == "POST").then(|| {
                tree.get_mut(HPE_CD).unwrap()["Inserted"] = json!(!empties);
                refusal(400, "iLO.2.8.NoVirtualMedia", "nothing to eject")
            })
        })
        .await;
        let outcome = fixture.bmc(Auth::Basic).media.unwrap().eject().await;
        assert_eq!(outcome.is_ok(), succeeds, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_bmc_without_a_drive_says_so() {
    let fixture =
        Fixture::serve(DELL, |asked, _| asked.path.contains("VirtualMedia").then(|| empty(404)))
            .await;
    let error = fixture.bmc(Auth::Basic).media.unwrap().eject().await.unwrap_err();
    assert!(matches!(error, BmcError::Unsupported { .. }), "{error:?}");
    assert_eq!(error.to_string(), "this BMC cannot offer a virtual CD drive");
}

#[tokio::test]
async fn the_light_is_switched_with_a_listed_word() {
    let fixture =
        Fixture::serve(HPE, |asked, _| (asked.method == "PATCH").then(|| empty(200))).await;
    fixture.bmc(Auth::Basic).sensors.unwrap().identify(IdentifyLight::On).await.unwrap();
    expect![[r#"PATCH /redfish/v1/Systems/1/ {"LocationIndicatorActive":true}"#]]
        .assert_eq(&fixture.changes());

    let fixture = Fixture::serve(DELL, |asked, _| {
        (asked.method == "PATCH").then(|| match asked.body["IndicatorLED"].as_str() {
            Some("Blinking") => refusal(400, "Base.1.8.PropertyValueNotInList", "not in the list"),
            _ => empty(200),
        })
    })
    .await;
    let sensors = fixture.bmc(Auth::Basic).sensors.unwrap();
    sensors.identify(IdentifyLight::On).await.unwrap();
    sensors.identify(IdentifyLight::Off).await.unwrap();
    expect![[r#"
        PATCH /redfish/v1/Systems/System.Embedded.1 {"IndicatorLED":"Blinking"}
        PATCH /redfish/v1/Systems/System.Embedded.1 {"IndicatorLED":"Lit"}
        PATCH /redfish/v1/Systems/System.Embedded.1 {"IndicatorLED":"Off"}"#]]
    .assert_eq(&fixture.changes());
}

#[tokio::test]
async fn a_machine_without_a_light_says_so() {
    let fixture = Fixture::serve(DELL, |_, tree| {
        tree.values_mut()
            .filter_map(|v| v.as_object_mut())
            .for_each(|v| drop(v.remove("IndicatorLED")));
        None
    })
    .await;
    let error = fixture.bmc(Auth::Basic).sensors.unwrap().identify(IdentifyLight::On).await;
    assert!(matches!(error, Err(BmcError::Unsupported { .. })), "{error:?}");
}
