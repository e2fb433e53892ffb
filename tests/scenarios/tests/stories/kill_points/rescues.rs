//! A rescue and its end, while baremetald is killed. The agent ends once it has the password, so a service that died before it recorded the
//! answer boots the ramdisk again; nobody waits for an agent that is gone, and no rescue is without its password.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Settings};
use serde_json::{Value, json};

use super::{StateBefore, anywhere, power_with_repeats, settings, states_with_repeats};
use crate::rescue::{
    RESCUE, adopted, can_log_in, has_no_password, installed, rescue, runs_its_disk,
};

async fn outlived(blueprint: Machine, (every, spares): (usize, fn(&str) -> bool)) -> Vec<String> {
    let lab = Lab::with_mortal(Settings { silence_timeout: "2s", ..settings() }).await;
    let machine = lab.rack(blueprint).await;
    let node = installed(&lab, &machine).await;
    let kill = async |asked: Value, end: &str| {
        let before = StateBefore::of(&lab, node, &machine).await;
        let ask = async || lab.ask_once(node, &before.node, &asked).await;
        let done = async || lab.ends(node, &before.node, end).await;
        let points = lab.kill_at_every_point(every, spares, ask, done).await;
        (before, points)
    };

    let (before, mut points) = kill(rescue(), "rescue").await;
    can_log_in(&machine).await;
    has_no_password(&lab, node).await;
    let power = before.power(&machine);
    let repeats = power.iter().filter(|change| **change == On).count() - 1;
    assert!(repeats <= points.len(), "{repeats} repeats: {points:#?}");
    assert_eq!(power, power_with_repeats(&[ForceOff, On], 1, repeats), "{points:#?}");
    let states = states_with_repeats(RESCUE, repeats);
    assert_eq!(before.states(&lab, node).await, states, "{points:#?}");
    let finalized = before.steps(&machine);
    assert!((1..=repeats + 1).contains(&finalized.len()), "{finalized:?}: {points:#?}");
    assert!(finalized.iter().all(|step| step == "finalize_rescue"), "{finalized:?}");

    let (before, more) = kill(json!({"target": "unrescue"}), "active").await;
    runs_its_disk(&machine).await;
    assert_eq!(before.states(&lab, node).await, ["unrescuing", "active"], "{more:#?}");
    assert_eq!(before.power(&machine), [ForceOff, On], "{more:#?}");
    points.extend(more);
    points
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rescue_and_its_end_survive_kills() {
    let points = outlived(Machine::redfish("r1u1").without_tls(), anywhere()).await;
    assert!(points.len() >= 8, "{points:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rescue_survives_kills_around_the_command_that_ends_its_agent() {
    let spares = |point: &str| !point.contains("agent: command");
    let points = outlived(Machine::redfish("r1u2").without_tls(), (1, spares)).await;
    assert!(points.len() >= 2, "before the command and after: {points:#?}");
}

/// Our agent closes its API at once, so a service that died before it got the answer finds nobody to ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rescue_whose_answer_is_lost_boots_the_ramdisk_again() {
    let lab = Lab::with_mortal(Settings { silence_timeout: "2s", ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u3").without_tls().with_our_agent()).await;
    let node = adopted(&lab, &machine).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let ask = async || lab.ask_once(node, &before.node, &rescue()).await;
    let done = async || drop(lab.reaches(node, "rescue").await);
    let spares = |point: &str| !point.contains("after agent: command");
    let points = lab.kill_at_every_point(1, spares, ask, done).await;
    assert_eq!(points.len(), 1, "{points:#?}");
    can_log_in(&machine).await;
    has_no_password(&lab, node).await;
    assert_eq!(before.states(&lab, node).await, states_with_repeats(RESCUE, 1));
    assert_eq!(before.power(&machine), [On, ForceOff, On]);
    let history = lab.history(node).await;
    let told = "the service restarted while the rescue password was set";
    assert!(history.iter().any(|it| it.event.starts_with(told)), "{history:#?}");
}
