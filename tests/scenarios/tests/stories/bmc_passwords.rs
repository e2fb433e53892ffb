//! New passwords of BMC accounts.

use api_client::baremetald::{self, History, HistoryEvent};
use bmc_emulator::StatusFault;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use reqwest::Method;
use serde_json::json;

/// The path of the request for a new password.
pub(crate) fn rotation(node: Node) -> String {
    format!("/bedplate/v1/nodes/{}/rotate-bmc-password", node.0)
}

/// Waits until a change of the password has ended, and returns the history after the first `before` entries.
pub(crate) async fn ends(lab: &Lab, node: Node, before: usize) -> Vec<HistoryEvent> {
    let is_end = |it: &HistoryEvent| {
        it.event == "the password of the BMC account was changed" || it.severity == "ERROR"
    };
    let look = |history: &History| {
        let since = history.history.get(before..)?;
        since.iter().any(is_end).then(|| since.to_vec())
    };
    let path = format!("{}/history?detail=true&limit=1000", node.path());
    lab.api().until(&path, "the end of the change", look).await
}

/// Requests a new password, waits until the change has ended, and returns the node.
async fn rotate(lab: &Lab, node: Node) -> baremetald::Node {
    let before = lab.history(node).await.len();
    lab.api().send(Method::POST, &rotation(node), None).await.expect("the request is accepted");
    let events = ends(lab, node, before).await;
    assert_eq!(events[0].event, "a new password of the BMC account requested");
    lab.node(node).await
}

/// Checks that the service can still use the BMC.
pub(crate) async fn works(lab: &Lab, node: Node, machine: &RackedMachine) {
    let path = format!("{}/states/power", node.path());
    let on = json!({"target": "power on"});
    lab.api().send(Method::PUT, &path, Some(&on)).await.expect("the power is requested");
    let is_on = |it: &baremetald::Node| it.power_state.as_deref() == Some("power on");
    lab.until(node, "power on", is_on).await;
    assert!(machine.chassis().power().borrow().on);
}

fn settings() -> Settings {
    Settings { ask_again: "50ms", poll_every: "10ms", ..Settings::default() }
}

#[tokio::test]
async fn the_bmc_gets_a_password_that_nobody_sees() {
    let lab = Lab::start_with(settings()).await;
    for blueprint in [Machine::redfish("r1u60"), Machine::idrac("r1u61"), Machine::ipmi("r1u62")] {
        let machine = lab.rack(blueprint).await;
        let node = lab.manageable(&machine).await;
        let old = machine.chassis().password();
        let shown = rotate(&lab, node).await;
        let new = machine.chassis().password();
        assert_ne!(new, old);
        assert_eq!(shown.last_error, None);
        works(&lab, node, &machine).await;
        for path in [node.path(), format!("{}/history?detail=true", node.path())] {
            let answer: serde_json::Value = lab.api().get(&path).await;
            assert!(!answer.to_string().contains(&new), "{path}");
        }
    }
}

#[tokio::test]
async fn a_bmc_that_refuses_or_ignores_the_password_keeps_the_old_one() {
    let lab = Lab::start_with(settings()).await;
    let machine = lab.rack(Machine::redfish("r1u63")).await;
    let node = lab.manageable(&machine).await;
    let old = machine.chassis().password();
    machine.chassis().faults().update(|faults| faults.refuse_passwords = true);
    let error = rotate(&lab, node).await.last_error.unwrap_or_default();
    assert!(error.starts_with("the password of the BMC account stays: the BMC refused"), "{error}");
    assert!(error.contains("malformed"), "the reason is the BMC's: {error}");
    machine.chassis().faults().update(|faults| {
        faults.refuse_passwords = false;
        faults.ignore_passwords = true;
    });
    let error = rotate(&lab, node).await.last_error.unwrap_or_default();
    let want = "the BMC was asked 3 times for a new password, and still has the old one";
    assert!(error.starts_with(want), "{error}");
    assert_eq!(machine.chassis().password(), old);
    works(&lab, node, &machine).await;
}

/// The BMC accepts the change in the session that the service has, and then refuses every login.
#[tokio::test]
async fn a_bmc_that_accepts_neither_password_is_left_alone_until_the_next_request() {
    let lab = Lab::start_with(settings()).await;
    let machine = lab.rack(Machine::redfish("r1u64").without_tls()).await;
    let node = lab.manageable(&machine).await;
    works(&lab, node, &machine).await;
    let old = machine.chassis().password();
    let login = StatusFault {
        status: 401,
        method: Some("POST".to_owned()),
        path_prefix: Some("/redfish/v1/SessionService/Sessions".to_owned()),
        ..StatusFault::default()
    };
    machine.chassis().faults().update(|faults| faults.status.push(login));
    let error = rotate(&lab, node).await.last_error.unwrap_or_default();
    assert!(error.starts_with("the BMC accepts neither the old nor the new password"), "{error}");
    let new = machine.chassis().password();
    assert_ne!(new, old);
    let path = format!("{}/states/power", node.path());
    let off = json!({"target": "power off"});
    let refused = lab.api().refused(Method::PUT, &path, Some(&off)).await;
    assert!(refused.message.is_some_and(|why| why.contains("request the change again")));

    machine.chassis().faults().clear();
    assert_eq!(rotate(&lab, node).await.last_error, None);
    assert_eq!(machine.chassis().password(), new, "the BMC had the new password already");
    lab.api().send(Method::PUT, &path, Some(&off)).await.expect("the power is requested");
    let is_off = |it: &baremetald::Node| it.power_state.as_deref() == Some("power off");
    lab.until(node, "power off", is_off).await;
}
