//! Steps that run on child nodes.

use super::*;
use crate::{ChildNodes, ChildStep};

fn child(number: u8) -> Node {
    let id = format!("00000000-0000-0000-0000-{number:012}").parse().unwrap();
    Node::new(id, Driver::Redfish, T0)
}

/// A node that is cleaned and runs this step on its child nodes now.
fn parent(step: &str, children: ChildNodes) -> Node {
    let step = Step {
        kind: StepKind::Clean,
        runner: StepRunner::Conductor,
        name: StepName { interface: Interface::Power, step: step.to_owned() },
        args: Map::new(),
        priority: 0,
        reboots: false,
        children: Some(children),
    };
    let run = ChildStep { step, asked: None };
    Node { provision_state: State::Cleaning, ..at(Task::StepOnChildren(Box::new(run)), None) }
}

fn with(children: Vec<Node>) -> Observed {
    Observed { children, ..seen() }
}

/// The node after the change was requested from these child nodes, and the child nodes.
fn asked(node: &Node, children: Vec<Node>) -> (Node, Vec<Node>) {
    let update = planned(node, &with(children), T0).change.unwrap();
    (update.node, update.children.into_iter().map(|(child, _)| child).collect())
}

#[test]
fn a_step_requests_a_change_of_power_from_all_child_nodes_in_one_write_and_waits() {
    for (step, change) in [
        ("power_on", PowerChange::On),
        ("power_off", PowerChange::ForceOff),
        ("reboot", PowerChange::ForceRestart),
    ] {
        let node = parent(step, ChildNodes::All);
        let failure = Some(Failure::new(Reason::PowerStuck, "an earlier failure"));
        let failed = Node { failure, ..child(2) };
        let update = planned(&node, &with(vec![child(1), failed]), T0).change.unwrap();
        let request = PowerRequest::new(change, T0 + timeouts().power);
        let told = format!("the clean step power.{step} of node {} begins here", node.id);
        for (child, entry) in &update.children {
            assert_eq!((child.power_request.as_ref(), &child.failure), (Some(&request), &None));
            assert_eq!((entry.node, &entry.event), (child.id, &told));
        }
        let children: Vec<Node> = update.children.into_iter().map(|(child, _)| child).collect();
        let waiting = update.node;
        check(&waiting, with(children.clone()), 999, expect!["Wait(1 s)"]);
        let done = |child: &Node| Node {
            power_request: None,
            power_state: Some(change.leads_to()),
            ..child.clone()
        };
        let one = vec![done(&children[0]), children[1].clone()];
        check(&waiting, with(one), 9, expect!["Wait(1 s)"]);
        check(&waiting, with(children.iter().map(done).collect()), 9, expect!["NextTask"]);
        let (next, entry) = start_next_task(&waiting, T0 + Duration::from_secs(9)).unwrap();
        let told = format!("the clean step power.{step} on child nodes took 9 s");
        assert_eq!((next.work.unwrap().cursor, entry.unwrap().event), (1, told));
    }
}

#[test]
fn a_step_runs_on_the_named_child_nodes_alone() {
    let named = |children: &[Node]| {
        let ids = children.iter().map(|child| child.id).collect();
        parent("power_on", ChildNodes::Named(ids))
    };
    let all = || vec![child(1), child(2), child(3)];
    let (_, children) = asked(&named(&[child(3), child(1)]), all());
    assert_eq!(children.iter().map(|it| it.id).collect::<Vec<_>>(), [child(1).id, child(3).id]);
    check(
        &named(&[child(1), child(9)]),
        with(all()),
        0,
        expect![
            "GiveUp(StepFailed: node 00000000-0000-0000-0000-000000000009 is not a child node any more)"
        ],
    );
}

#[test]
fn a_node_without_child_nodes_goes_on() {
    check(&parent("power_off", ChildNodes::All), seen(), 0, expect!["NextTask"]);
}

#[test]
fn an_earlier_change_of_power_of_a_child_node_ends_first() {
    let deadline = T0 + Duration::from_secs(60);
    let power_request = Some(PowerRequest::new(PowerChange::On, deadline));
    let changing = Node { power_request, ..child(2) };
    let node = parent("power_off", ChildNodes::All);
    check(&node, with(vec![child(1), changing]), 0, expect!["Wait(1 s)"]);
}

#[test]
fn a_child_node_that_refuses_the_change_fails_the_step_and_no_change_is_requested() {
    let busy = Node { provision_state: State::Deploying, ..child(2) };
    let stays_on = Node { disable_power_off: true, ..child(2) };
    let mut host = Node { provision_state: State::Active, ..child(2) };
    host.instance_info.insert("hypervisor_hostname".to_owned(), "h1".into());
    for (other, why) in [
        (&busy, "is locked while it is deploying"),
        (&stays_on, "has disable_power_off set"),
        (&host, "is the compute host h1, whose servers would stop"),
    ] {
        let node = parent("power_off", ChildNodes::All);
        let update = planned(&node, &with(vec![child(1), other.clone()]), T0).change.unwrap();
        assert!(update.children.is_empty());
        let cause = update.node.failure.unwrap().cause;
        assert!(cause.contains(why) && cause.contains(&other.label()), "{cause}");
        assert_eq!(update.node.provision_state, State::CleanFailed);
        assert!(update.node.maintenance.is_some(), "a step that fails is a fault");
    }
    let node = parent("power_on", ChildNodes::All);
    for other in [stays_on, host] {
        assert_eq!(asked(&node, vec![child(1), other]).1.len(), 2);
    }
}

#[test]
fn the_step_fails_with_the_failure_of_a_child_node_once_no_change_is_in_progress() {
    let node = parent("reboot", ChildNodes::All);
    let (waiting, children) = asked(&node, vec![child(1), child(2)]);
    let ended = |child: &Node| Node { power_request: None, ..child.clone() };
    let failure = Some(Failure::new(Reason::PowerStuck, "the machine stays on"));
    let stuck = Node { failure, power_state: Some(PowerState::On), ..ended(&children[0]) };
    let on = Node { power_state: Some(PowerState::On), ..ended(&children[1]) };
    check(&waiting, with(vec![stuck.clone(), children[1].clone()]), 9, expect!["Wait(1 s)"]);
    check(
        &waiting,
        with(vec![stuck, on.clone()]),
        9,
        expect![[
            r#"GiveUp(PowerStuck: child node "00000000-0000-0000-0000-000000000001": the machine stays on)"#
        ]],
    );
    let replaced = ended(&children[0]);
    check(
        &waiting,
        with(vec![replaced, on.clone()]),
        9,
        expect![[
            r#"GiveUp(StepFailed: another request ended the change of power of child node "00000000-0000-0000-0000-000000000001" before "power on")"#
        ]],
    );
    check(
        &waiting,
        with(vec![on]),
        9,
        expect![
            "GiveUp(StepFailed: child node 00000000-0000-0000-0000-000000000001 was deleted while the step ran on it)"
        ],
    );
}
