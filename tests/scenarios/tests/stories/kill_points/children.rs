//! Steps that run on child nodes, while the service is killed. Each change of power is requested once from each child node.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine};
use peers::kill_every;

use super::{EVERY, StateBefore, settings};
use crate::children::{clean_children, family};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_on_child_nodes_survive_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machines = ["a", "b", "c"].map(|name| Machine::redfish(name).without_tls());
    let family = family(&lab, machines.into()).await;
    let mut before = Vec::new();
    for (node, machine) in &family {
        before.push(StateBefore::of(&lab, *node, machine).await);
    }
    let parent = family[0].0;
    let body = clean_children(&["power_on", "reboot", "power_off"]);
    let ask = async || lab.ask_once(parent, &before[0].node, &body).await;
    let done = async || lab.ends(parent, &before[0].node, "manageable").await;
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 3, "{points:#?}");
    for at in [1, 2] {
        let (node, machine) = &family[at];
        let changes = [On, ForceOff, On, ForceOff];
        assert_eq!(before[at].power(machine), changes, "killed at {points:#?}");
        let history = lab.history(*node).await;
        let begins = |event: &str| event.ends_with(" begins here");
        let told = history.iter().filter(|it| begins(&it.event)).count();
        assert_eq!(told, 3, "killed at {points:#?}: {history:#?}");
    }
    assert_eq!(before[0].power(&family[0].1), [], "killed at {points:#?}");
}
