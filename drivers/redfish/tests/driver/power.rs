//! Tests of power control over a real socket.

use crate::fixture::{Fixture, ReceivedRequest, empty, json, refusal, silent};
use axum::response::IntoResponse;
use bmc::{BmcError, Power};
use expect_test::{Expect, expect};
use hardware::{PowerChange, PowerState};
use redfish::Auth;
use serde_json::{Value, json};

const DELL: &str = include_str!("trees/dell.json");
const HPE: &str = include_str!("trees/hpe.json");
const SUPERMICRO: &str = include_str!("trees/supermicro.json");
const DELL_SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";

/// Checks the requests that the driver sends for `change` to a machine in `state`.
async fn check(tree: &str, state: &'static str, change: PowerChange, want: Expect) {
    let fixture = Fixture::serve(tree, move |asked, tree| {
        for resource in tree.values_mut().filter(|resource| resource.get("PowerState").is_some()) {
            resource["PowerState"] = json!(state);
        }
        (asked.method == "POST").then(|| empty(204))
    })
    .await;
    let outcome = fixture.bmc(Auth::Basic).power.request(change).await;
    let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
    want.assert_eq(&format!("{}{error}", fixture.changes()));
}

#[tokio::test]
async fn changes_go_to_the_action_that_was_found() {
    check(DELL, "On", PowerChange::ForceOff, expect![[r#"POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset {"ResetType":"ForceOff"}"#]]).await;
    check(DELL, "On", PowerChange::SoftRestart, expect![[r#"POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset {"ResetType":"GracefulRestart"}"#]]).await;
    check(DELL, "PoweringOff", PowerChange::ForceOff, expect![[r#"POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset {"ResetType":"ForceOff"}"#]]).await;
}

#[tokio::test]
async fn reading_the_state_once_keeps_no_connection() {
    let fixture = Fixture::serve(DELL, silent).await;
    let power = fixture.bmc(Auth::Basic).power;
    let last =
        || fixture.asked().last().and_then(|asked| asked.header("connection").map(str::to_owned));
    assert_eq!(power.state().await.unwrap(), PowerState::On);
    assert_eq!(last(), None);
    assert_eq!(power.state_once().await.unwrap(), PowerState::On);
    assert_eq!(last().as_deref(), Some("close"));
}

#[tokio::test]
async fn no_request_is_sent_if_the_state_is_right() {
    check(DELL, "On", PowerChange::On, expect![""]).await;
    check(DELL, "PoweringOn", PowerChange::On, expect![""]).await;
    check(DELL, "Off", PowerChange::ForceOff, expect![""]).await;
    check(DELL, "Off", PowerChange::SoftOff, expect![""]).await;
}

#[tokio::test]
async fn allowable_values_are_found_in_action_info() {
    check(
        HPE,
        "Off",
        PowerChange::ForceRestart,
        expect![[r#"POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset/ {"ResetType":"On"}"#]],
    )
    .await;
    check(HPE, "On", PowerChange::SoftRestart, expect![[r#"POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset/ {"ResetType":"GracefulRestart"}"#]]).await;
}

#[tokio::test]
async fn the_next_best_reset_type_is_sent() {
    check(
        SUPERMICRO,
        "Off",
        PowerChange::On,
        expect![[
            r#"POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset {"ResetType":"ForceOn"}"#
        ]],
    )
    .await;
    check(
        SUPERMICRO,
        "On",
        PowerChange::ForceRestart,
        expect![[
            r#"POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset {"ResetType":"PowerCycle"}"#
        ]],
    )
    .await;
    check(
        SUPERMICRO,
        "On",
        PowerChange::SoftOff,
        expect![[r#"this BMC cannot ask for a shutdown: it offers ForceOn, ForceOff, PowerCycle"#]],
    )
    .await;
}

/// A BMC that lists no values and accepts only `known`.
async fn listing_nothing(known: &'static str) -> Fixture {
    Fixture::serve(DELL, move |asked, tree| {
        let system = tree.get_mut(DELL_SYSTEM).unwrap();
        let reset = &mut system["Actions"]["#ComputerSystem.Reset"];
        reset.as_object_mut().unwrap().remove("ResetType@Redfish.AllowableValues");
        (asked.method == "POST").then(|| match asked.body["ResetType"].as_str() {
            Some(value) if value == known => empty(204),
            _ => refusal(400, "Base.1.8.ActionParameterValueNotInList", "not one of those"),
        })
    })
    .await
}

#[tokio::test]
async fn without_a_list_the_values_are_tried() {
    let fixture = listing_nothing("PowerCycle").await;
    fixture.bmc(Auth::Basic).power.request(PowerChange::ForceRestart).await.unwrap();
    assert_eq!(fixture.asked().iter().filter(|asked| asked.method == "POST").count(), 2);

    let fixture = listing_nothing("ForceOff").await;
    let error = fixture.bmc(Auth::Basic).power.request(PowerChange::SoftRestart).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot ask for a restart");
}

async fn interrupt(fixture: &Fixture) -> Result<(), BmcError> {
    fixture.bmc(Auth::Basic).interrupt.expect("Redfish has a reset type for it").inject_nmi().await
}

#[tokio::test]
async fn an_interrupt_is_sent_only_to_a_bmc_that_offers_it() {
    for (tree, want) in [
        (
            DELL,
            expect![[
                r#"POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset {"ResetType":"Nmi"}"#
            ]],
        ),
        (
            HPE,
            expect![[
                r#"POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset/ {"ResetType":"Nmi"}"#
            ]],
        ),
        (
            SUPERMICRO,
            expect!["this BMC cannot inject an NMI: it offers ForceOn, ForceOff, PowerCycle"],
        ),
    ] {
        let fixture =
            Fixture::serve(tree, |asked, _| (asked.method == "POST").then(|| empty(204))).await;
        let outcome = interrupt(&fixture).await;
        let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        want.assert_eq(&format!("{}{error}", fixture.changes()));
    }
}

#[tokio::test]
async fn an_interrupt_that_the_bmc_does_not_know_is_unsupported() {
    interrupt(&listing_nothing("Nmi").await).await.unwrap();
    let error = interrupt(&listing_nothing("On").await).await.unwrap_err();
    assert!(matches!(error, BmcError::Unsupported { .. }), "{error:?}");
    let error = interrupt(&refusing("Off", "Off").await).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { .. }), "{error:?}");
}

/// A BMC that reports `before`, refuses the change, and then reports `after`.
async fn refusing(before: &'static str, after: &'static str) -> Fixture {
    let mut state = before;
    Fixture::serve(DELL, move |asked, tree| {
        tree.get_mut(DELL_SYSTEM).unwrap()["PowerState"] = json!(state);
        (asked.method == "POST").then(|| {
            state = after;
            refusal(409, "IDRAC.2.8.PSU501", "already there")
        })
    })
    .await
}

#[tokio::test]
async fn a_refusal_is_ignored_if_the_state_is_right() {
    let fixture = refusing("On", "Off").await;
    fixture.bmc(Auth::Basic).power.request(PowerChange::ForceOff).await.unwrap();
    let fixture = refusing("Off", "PoweringOn").await;
    fixture.bmc(Auth::Basic).power.request(PowerChange::On).await.unwrap();
}

#[tokio::test]
async fn a_refusal_stands_when_the_state_is_wrong() {
    let fixture = refusing("On", "On").await;
    let error = fixture.bmc(Auth::Basic).power.request(PowerChange::ForceOff).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the BMC refused POST {DELL_SYSTEM}/Actions/ComputerSystem.Reset: 409 Conflict: already there"
        )
    );
}

#[tokio::test]
async fn idrac10_settling_after_power_off_is_transient() {
    let fixture = Fixture::serve(DELL, |asked, tree| {
        tree.get_mut(DELL_SYSTEM).unwrap()["PowerState"] = json!("Off");
        let conflict = || refusal(409, "Base.1.18.ActionParameterValueConflict", "conflict");
        (asked.method == "POST").then(conflict)
    })
    .await;
    let error = fixture.bmc(Auth::Basic).power.request(PowerChange::On).await.unwrap_err();
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_machine_that_powers_off_is_not_off_yet() {
    for (word, want) in [
        ("On", PowerState::On),
        ("PoweringOn", PowerState::On),
        ("PoweringOff", PowerState::On),
        ("Off", PowerState::Off),
    ] {
        let fixture = Fixture::serve(DELL, move |_, tree| {
            tree.get_mut(DELL_SYSTEM).unwrap()["PowerState"] = json!(word);
            None
        })
        .await;
        assert_eq!(fixture.bmc(Auth::Basic).power.state().await.unwrap(), want, "{word}");
    }
}

/// A BMC that runs a reset as a task whose monitor answers with `looks`, one after the other.
async fn with_task(looks: Vec<(u16, Value)>) -> Fixture {
    let mut looks = looks.into_iter();
    Fixture::serve(DELL, move |asked: &ReceivedRequest, _| match asked.path.as_str() {
        "/redfish/v1/TaskMonitor/1" => {
            let (status, body) = looks.next().expect("no more looks than planned");
            Some(([("retry-after", "0")], json(status, body)).into_response())
        }
        _ if asked.method == "POST" => Some(
            (
                [("location", "/redfish/v1/TaskMonitor/1"), ("retry-after", "0")],
                json(
                    202,
                    json!({"@odata.id": "/redfish/v1/TaskService/Tasks/1", "TaskState": "New"}),
                ),
            )
                .into_response(),
        ),
        _ => None,
    })
    .await
}

async fn reset(fixture: &Fixture) -> Result<(), BmcError> {
    let power: std::sync::Arc<dyn Power> = fixture.bmc(Auth::Basic).power;
    power.request(PowerChange::ForceRestart).await
}

#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    let fixture = with_task(vec![
        (202, json!({"TaskState": "Running"})),
        (200, json!({"TaskState": "Running"})),
        (204, json!({})),
    ])
    .await;
    reset(&fixture).await.unwrap();
    assert_eq!(fixture.count("GET", "/redfish/v1/TaskMonitor/1"), 3);
}

#[tokio::test]
async fn a_task_that_fails_says_why() {
    let failed = json!({"TaskState": "Exception", "Messages": [{"MessageId": "X.1.PSU", "Message": "no power supply"}]});
    let error = reset(&with_task(vec![(200, failed)]).await).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the BMC refused GET /redfish/v1/TaskMonitor/1: the task ended as Exception: no power supply"
    );
    let error = reset(&with_task(vec![(500, json!({}))]).await).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { transient: true, .. }), "{error:?}");
}

#[tokio::test]
async fn a_task_whose_monitor_is_gone_has_ended() {
    reset(&with_task(vec![(404, json!({}))]).await).await.unwrap();
}
