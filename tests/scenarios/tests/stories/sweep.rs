//! Power changes that the service did not request: a button is pushed, or an operating system shuts down.

use api_client::baremetald;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Stage;
use reqwest::Method;
use serde_json::json;

/// A lab that refreshes all power states at short intervals.
async fn watchful() -> Lab {
    Lab::start_with(Settings { power_sync_every: "200ms", ..Settings::default() }).await
}

/// Waits until the service has recorded this power state.
async fn is_recorded(lab: &Lab, node: Node, power: &str) -> baremetald::Node {
    lab.until(node, power, |it| it.power_state.as_deref() == Some(power)).await
}

/// A person switches an available machine on and off by its button: the record follows, and the service does not interfere.
async fn the_record_follows(machine: Machine) {
    let lab = watchful().await;
    let machine: RackedMachine = lab.rack(machine).await;
    let node = lab.available(&machine).await;
    is_recorded(&lab, node, "power off").await;
    let asked = machine.chassis().log().len();

    machine.chassis().push_power_button();
    let seen = is_recorded(&lab, node, "power on").await;
    assert_eq!((seen.state(), &seen.target_power_state), ("available", &None));
    assert_eq!(seen.last_error, None);
    machine.chassis().guest_power_off();
    is_recorded(&lab, node, "power off").await;
    let log = machine.chassis().log();
    assert_eq!(log[asked..], [], "a sweep looks, and asks a BMC for nothing");
}

#[tokio::test]
async fn a_power_button_is_noticed_by_redfish() {
    the_record_follows(Machine::redfish("m")).await;
}

#[tokio::test]
async fn a_power_button_is_noticed_by_ipmi() {
    the_record_follows(Machine::ipmi("m")).await;
}

#[tokio::test]
async fn a_shutdown_of_an_installed_machine_is_noticed_and_left_alone() {
    let lab = watchful().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    let node = lab.available(&machine).await;
    lab.provision(node, "active").await.reaches("active").await;
    let mut stage = machine.stage();
    stage.wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    is_recorded(&lab, node, "power on").await;

    machine.chassis().guest_power_off();
    let seen = is_recorded(&lab, node, "power off").await;
    assert_eq!(seen.state(), "active");
    assert!(!machine.chassis().power().borrow().on, "the lessee may switch it off");

    // A BMC that does not answer changes nothing at first.
    machine.chassis().faults().update(|faults| faults.drop = true);
    machine.chassis().push_power_button();
    let neighbour = lab.rack(Machine::redfish("neighbour")).await;
    let neighbours = lab.available(&neighbour).await;
    neighbour.chassis().push_power_button();
    is_recorded(&lab, neighbours, "power on").await;
    machine.chassis().faults().clear();
    is_recorded(&lab, node, "power on").await;
}

/// As in Ironic, the node of a BMC that stays silent is put into maintenance, and the maintenance ends when the BMC answers again.
#[tokio::test]
async fn a_silent_bmc_is_a_power_failure_until_it_answers_again() {
    let lab = watchful().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    let node = lab.available(&machine).await;
    let held = lab.rack(Machine::redfish("held")).await;
    let held_node = lab.available(&held).await;
    is_recorded(&lab, node, "power off").await;
    is_recorded(&lab, held_node, "power off").await;
    let maintenance = format!("{}/maintenance", held_node.path());
    let reason = json!({"reason": "new fan"});
    lab.api().send(Method::PUT, &maintenance, Some(&reason)).await.expect("maintenance");

    for machine in [&machine, &held] {
        machine.chassis().faults().update(|faults| faults.drop = true);
    }
    let is_failed = |it: &baremetald::Node| it.fault.as_deref() == Some("power failure");
    let seen = lab.until(node, "power failure", is_failed).await;
    assert_eq!((seen.maintenance, seen.power_state), (true, None));
    let reason = seen.maintenance_reason.unwrap_or_default();
    assert!(reason.contains("did not report the power state 4 times in a row"), "{reason}");
    let faulty: Vec<baremetald::Node> = lab.api().list("/v1/nodes?fault=power%20failure").await;
    assert_eq!(faulty.len(), 1, "{faulty:?}");
    let seen = lab.until(held_node, "unknown power", |it| it.power_state.is_none()).await;
    assert_eq!((seen.fault, seen.maintenance_reason.as_deref()), (None, Some("new fan")));

    machine.chassis().faults().clear();
    held.chassis().faults().clear();
    let seen = is_recorded(&lab, node, "power off").await;
    assert_eq!((seen.maintenance, seen.fault), (false, None));
    let seen = is_recorded(&lab, held_node, "power off").await;
    assert!(seen.maintenance, "the maintenance of a person stays");
}

/// Sweeps stop before the BMC locks the account, so the node recovers as soon as its password is correct.
#[tokio::test]
async fn a_wrong_password_does_not_lock_the_account_of_a_bmc() {
    let lab = watchful().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    let node = lab.available(&machine).await;
    is_recorded(&lab, node, "power off").await;
    machine.chassis().faults().update(|faults| faults.lock_account_after = Some(5));

    let password = "/driver_info/redfish_password";
    lab.set(node, password, json!("wrong")).await;
    let is_failed = |it: &baremetald::Node| it.fault.as_deref() == Some("power failure");
    let seen = lab.until(node, "power failure", is_failed).await;
    let reason = seen.maintenance_reason.unwrap_or_default();
    assert!(reason.contains("rejected our credentials 3 times in a row"), "{reason}");
    // Sweeps go on.
    let neighbour = lab.rack(Machine::redfish("neighbour")).await;
    let neighbours = lab.available(&neighbour).await;
    neighbour.chassis().push_power_button();
    is_recorded(&lab, neighbours, "power on").await;

    lab.set(node, password, machine.driver_info()["redfish_password"].clone()).await;
    let seen = is_recorded(&lab, node, "power off").await;
    assert_eq!((seen.maintenance, seen.fault), (false, None));
}

#[tokio::test]
async fn the_health_that_a_bmc_reports_is_recorded() {
    let lab = watchful().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    let node = lab.available(&machine).await;
    for health in ["OK", "Critical", "OK"] {
        let reported = Some(health.to_owned());
        machine.chassis().faults().update(|faults| faults.reported_health = reported);
        lab.until(node, health, |it| it.health.as_deref() == Some(health)).await;
    }
    let events = lab.history(node).await.into_iter().map(|it| it.event);
    let of_health: Vec<String> = events.filter(|event| event.contains("health")).collect();
    let want = [
        "the BMC reports the health Critical; it was OK",
        "the BMC reports the health OK; it was Critical",
    ];
    assert_eq!(of_health, want);
}
