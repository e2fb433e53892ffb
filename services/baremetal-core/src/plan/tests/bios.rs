//! Steps that request BIOS settings.

use super::*;

fn step() -> Step {
    Step {
        kind: StepKind::Clean,
        runner: StepRunner::Conductor,
        name: StepName { interface: Interface::Bios, step: "apply_configuration".to_owned() },
        args: Map::new(),
        priority: 0,
        reboots: false,
        children: None,
    }
}

fn cleaning(task: Task) -> Node {
    let state = if task.is_waiting() { State::CleanWait } else { State::Cleaning };
    Node { provision_state: state, ..at(task, None) }
}

#[test]
fn a_restart_and_a_look_at_the_settings_are_parts_of_the_step() {
    let confirm = || Task::ConfirmBios { step: step(), started_at: T0 };
    let accepted = |node: &Node| {
        let now = T0 + Duration::from_secs(5);
        let update = concluded(node, &ActionOutcome::BiosAccepted, now).change.unwrap();
        assert!(update.history.is_empty(), "{:?}", update.history);
        update.node
    };
    let mut node = cleaning(Task::Step(step()));
    let plain = accepted(&node).work.unwrap().tasks;
    let restart = [Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    assert_eq!(plain[1..], [&restart[..], &[confirm()]].concat());
    // With the ramdisk, the restart boots the ramdisk again.
    node.work.as_mut().unwrap().tasks.push(Task::BootRamdisk);
    let again = accepted(&node).work.unwrap().tasks;
    assert_eq!(again[1..6], [&Task::boot_and(Task::AwaitAgent)[..], &[confirm()]].concat());

    let last = cleaning(confirm());
    let done = ActionOutcome::TaskDone(Box::new(last.clone()));
    let update = concluded(&last, &done, T0 + Duration::from_secs(75)).change.unwrap();
    assert_eq!(update.history[0].event, "the clean step bios.apply_configuration took 75 s; done");
}

#[test]
fn settings_that_the_firmware_does_not_take_fail_the_step_after_a_timeout() {
    let mut node = cleaning(Task::ConfirmBios { step: step(), started_at: T0 });
    let looked = |node: &Node, after_secs| {
        let now = T0 + jiff::SignedDuration::from_secs(after_secs);
        let outcome = ActionOutcome::BiosNotApplied("Delay".to_owned());
        text(node, &concluded(node, &outcome, now))
    };
    let failed =
        "GiveUp(StepFailed: the machine was restarted, and its firmware did not take Delay)";
    assert_eq!((&*looked(&node, 600), &*looked(&node, 601)), ("Wait(1 s)", failed));
    // The agent has reported, so the firmware has started, and only the BMC may lag behind.
    node.work.as_mut().unwrap().tasks.push(Task::BootRamdisk);
    assert_eq!((&*looked(&node, 60), &*looked(&node, 61)), ("Wait(1 s)", failed));
}
