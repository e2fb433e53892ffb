//! Fast track: boots that are left out, and machines that stay on.

use super::*;
use crate::DeployInterface;

/// Decides at `T0` with fast track.
fn fast(node: &Node, seen: &Observed) -> Decision<NodeUpdate, Action> {
    let timeouts = timeouts();
    let rules = PlanRules { fast_track: true, ..rules(&timeouts, WorkUuid::nil()) };
    plan(node, seen, &rules, T0).unwrap()
}

fn on() -> Observed {
    Observed { power: PowerSeen::Is(PowerState::On), ..seen() }
}

#[test]
fn work_continues_the_boot_of_the_work_whose_ramdisk_runs() {
    let mut free = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    free.provision_state = State::Available;
    let (node, _) = request_verb(&free, Verb::Deploy, WorkUuid::nil(), T0).unwrap();
    let booted = WorkUuid::max();
    let running = Observed { idle_ramdisk: Some(booted), ..on() };
    let update = fast(&node, &running).change.unwrap();
    let work = update.node.work.as_ref().unwrap();
    assert_eq!((work.task(), work.id), (Some(&Task::AwaitAgent), booted));
    assert_eq!(update.node.provision_state, State::DeployWait);
    assert_eq!(update.node.power_state, Some(PowerState::On));
    let event = "the ramdisk of earlier work still runs; waiting for the agent";
    assert_eq!(update.history[0].event, event);

    let present = Observed { agent: AgentSeen::Present, ..seen() };
    let next = planned(&update.node, &present, T0).change.unwrap().node;
    let list = Task::Agent(AgentCommand::ListSteps(StepKind::Deploy));
    assert_eq!(next.work.unwrap().task(), Some(&list));
    check(&node, running, 0, expect!["Act(RequestPower(ForceOff))"]);
    let asks = [Action::RequestPower(PowerChange::ForceOff)];
    assert_eq!(fast(&node, &on()).actions, asks);
}

#[test]
fn a_machine_whose_ramdisk_has_done_its_part_stays_on() {
    let mut known = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    known.provision_state = State::Manageable;
    known.power_state = Some(PowerState::On);
    let timeouts = timeouts();
    for (verb, waits) in [(Verb::Inspect, State::InspectWait), (Verb::Provide, State::CleanWait)] {
        let (mut node, _) = request_verb(&known, verb, WorkUuid::nil(), T0).unwrap();
        node.provision_state = waits;
        let work = node.work.as_mut().unwrap();
        work.cursor = work.tasks.len() - 3;
        let done = ActionOutcome::TaskDone(Box::new(node.clone()));
        for (fast_track, task) in [(true, Task::BootDisk), (false, Task::Power(PowerState::Off))] {
            let rules = PlanRules { fast_track, ..rules(&timeouts, WorkUuid::nil()) };
            let next = after_action(&node, &done, T0, &rules, T0).unwrap().change.unwrap();
            assert_eq!(next.history[0].event, task.describe());
            assert_eq!(next.node.work.unwrap().task(), Some(&task));
        }
    }
}

#[test]
fn a_machine_that_is_taken_out_of_use_is_switched_off() {
    let mut diskless = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    diskless.provision_state = State::Active;
    diskless.interfaces.deploy = Some(DeployInterface::Ramdisk);
    assert!(diskless.keeps_ramdisk(true));
    let (node, _) = request_verb(&diskless, Verb::Undeploy, WorkUuid::nil(), T0).unwrap();
    let off = Task::Power(PowerState::Off);
    assert_eq!(node.work.as_ref().unwrap().tasks, [off, Task::BootDisk]);
    let asks = [Action::RequestPower(PowerChange::ForceOff)];
    assert_eq!(fast(&node, &on()).actions, asks);
}
