//! Steps of a node that run on its child nodes, which are machines with BMCs of their own.

use api_client::baremetald::Node as ShownNode;
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, RackedMachine};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kill_points::StateBefore;

/// Enrolls the machines: the node of the first is the parent of the others. The nodes are manageable.
pub(crate) async fn family(lab: &Lab, machines: Vec<Machine>) -> Vec<(Node, RackedMachine)> {
    let mut family: Vec<(Node, RackedMachine)> = Vec::new();
    for machine in lab.rack_all(machines).await {
        let node = lab.manageable(&machine).await;
        if let Some((Node(parent), _)) = family.first() {
            lab.set(node, "/parent_node", json!(parent)).await;
        }
        family.push((node, machine));
    }
    family
}

/// The request for clean steps that run on all child nodes, without a boot of the ramdisk on the parent.
pub(crate) fn clean_children(steps: &[&str]) -> Value {
    let step =
        |step: &&str| json!({"interface": "power", "step": step, "execute_on_child_nodes": true});
    let steps: Vec<Value> = steps.iter().map(step).collect();
    json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true})
}

async fn states(lab: &Lab, family: &[(Node, RackedMachine)]) -> Vec<StateBefore> {
    let mut states = Vec::new();
    for (node, machine) in family {
        states.push(StateBefore::of(lab, *node, machine).await);
    }
    states
}

#[tokio::test]
async fn a_step_switches_all_child_nodes_and_each_history_tells() {
    let lab = Lab::start().await;
    let machines = vec![Machine::redfish("r1u1"), Machine::redfish("r1u2"), Machine::ipmi("r1u3")];
    let family = family(&lab, machines).await;
    let before = states(&lab, &family).await;
    let parent = family[0].0;
    let body = clean_children(&["power_on", "reboot", "power_off"]);
    lab.ask_once(parent, &before[0].node, &body).await;
    lab.reaches(parent, "manageable").await;
    assert_eq!(before[0].power(&family[0].1), [], "the parent is left as it is");
    for at in [1, 2] {
        let (node, machine) = &family[at];
        assert_eq!(before[at].power(machine), [On, ForceOff, On, ForceOff]);
        let child = lab.node(*node).await;
        assert_eq!((child.state(), &child.last_error), ("manageable", &None));
        let history = lab.history(*node).await;
        for step in ["power_on", "reboot", "power_off"] {
            let begins = format!("the clean step power.{step} of node ");
            let told = history.iter().filter(|it| it.event.starts_with(&begins)).count();
            assert_eq!(told, 1, "{step} in {history:#?}");
        }
    }
    let history = lab.history(parent).await;
    for step in ["power_on", "reboot", "power_off"] {
        let ended = format!("the clean step power.{step} on child nodes took ");
        let told = history.iter().filter(|it| it.event.starts_with(&ended)).count();
        assert_eq!(told, 1, "{step} in {history:#?}");
    }
}

#[tokio::test]
async fn a_step_runs_on_the_named_child_nodes_alone() {
    let lab = Lab::start().await;
    let machines = vec![Machine::redfish("a"), Machine::redfish("b"), Machine::redfish("c")];
    let family = family(&lab, machines).await;
    let before = states(&lab, &family).await;
    let (parent, Node(named)) = (family[0].0, family[2].0);
    let mut body = clean_children(&["power_on"]);
    body["clean_steps"][0]["limit_child_node_execution"] = json!([named]);
    lab.ask_once(parent, &before[0].node, &body).await;
    lab.reaches(parent, "manageable").await;
    let power = |at: usize| before[at].power(&family[at].1);
    assert_eq!((power(0), power(1), power(2)), (vec![], vec![], vec![On]));
}

/// Returns the node, manageable again after a failed cleaning.
async fn repaired(lab: &Lab, node: Node) -> ShownNode {
    lab.end_maintenance(node).await;
    lab.provision(node, "manage").await.reaches("manageable").await
}

#[tokio::test]
async fn a_child_node_that_fails_or_is_busy_fails_the_step_of_its_parent() {
    let lab = Lab::start().await;
    let machines = vec![Machine::redfish("a"), Machine::redfish("b"), Machine::redfish("c")];
    let family = family(&lab, machines).await;
    let before = states(&lab, &family).await;
    let (parent, broken) = (family[0].0, family[2].0);
    family[2].1.chassis().faults().update(|faults| {
        faults.refuse_credentials = true;
        faults.forget_sessions = true;
    });
    lab.ask_once(parent, &before[0].node, &clean_children(&["power_on"])).await;
    let error = lab.fails(parent, "clean failed").await;
    assert!(error.contains("child node "), "{error}");
    let failed = lab.node(parent).await;
    assert_eq!((failed.maintenance, failed.fault.as_deref()), (true, Some("clean failure")));
    assert!(lab.node(broken).await.last_error.is_some(), "the child node tells why");
    assert_eq!(before[1].power(&family[1].1), [On], "the other child node was switched on");

    family[2].1.chassis().faults().clear();
    let again = repaired(&lab, parent).await;
    let hold = json!([{"interface": "power", "step": "hold"}]);
    let hold = json!({"target": "clean", "clean_steps": hold, "disable_ramdisk": true});
    lab.ask_once(broken, &lab.node(broken).await, &hold).await;
    lab.reaches(broken, "clean hold").await;
    lab.ask_once(parent, &again, &clean_children(&["power_off"])).await;
    let is_locked = |it: &ShownNode| it.last_error.as_ref().is_some_and(|it| it.contains("locked"));
    lab.until(parent, "the busy child node", is_locked).await;
    assert_eq!(before[1].power(&family[1].1), [On], "no child node was switched off");

    lab.provision(broken, "unhold").await.reaches("manageable").await;
    let again = repaired(&lab, parent).await;
    lab.ask_once(parent, &again, &clean_children(&["power_off"])).await;
    lab.reaches(parent, "manageable").await;
    assert_eq!(before[1].power(&family[1].1), [On, ForceOff]);
}

#[tokio::test]
async fn a_step_that_no_child_node_can_run_is_refused_before_anything_changes() {
    let lab = Lab::start().await;
    let family = family(&lab, vec![Machine::redfish("a"), Machine::redfish("b")]).await;
    let parent = family[0].0;
    let path = format!("{}/states/provision", parent.path());
    let refused = lab.api().send(Method::PUT, &path, Some(&clean_children(&["hold"]))).await;
    assert_eq!(refused.status, 400);
    assert_eq!(lab.node(parent).await.state(), "manageable");
}
