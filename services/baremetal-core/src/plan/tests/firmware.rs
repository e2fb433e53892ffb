//! Updates of firmware.

use hardware::BmcTask;
use serde_json::json;

use super::*;
use crate::{AcceptedUpdate, UpdateInProgress, UpdateStage, parse_firmware_updates};

fn step(components: &[&str]) -> Step {
    let settings: Vec<_> = components
        .iter()
        .map(|component| json!({"component": component, "url": "http://h/image.bin"}))
        .collect();
    Step {
        kind: StepKind::Clean,
        runner: StepRunner::Conductor,
        name: StepName { interface: Interface::Firmware, step: "update".to_owned() },
        args: Map::from_iter([("settings".to_owned(), settings.into())]),
        priority: 0,
        reboots: false,
        children: None,
    }
}

/// A node at the first of these updates.
fn updating(components: &[&str], stage: UpdateStage) -> Node {
    let step = step(components);
    assert!(parse_firmware_updates(&step.args).is_ok());
    let update = UpdateInProgress { step, number: 0, stage };
    let mut node = at(Task::UpdateFirmware(Box::new(update)), None);
    node.provision_state = State::CleanWait;
    node
}

fn asking(known: Option<&[&str]>) -> UpdateStage {
    let known = known.map(|known| known.iter().map(|task| (*task).to_owned()).collect());
    UpdateStage::Asking { known, version: Some("1".to_owned()), at: T0 }
}

fn accepted(restarted: bool) -> UpdateStage {
    let (task, version) = (Some("t2".to_owned()), Some("1".to_owned()));
    UpdateStage::Accepted(AcceptedUpdate { task, version, at: T0, restarted })
}

fn firmware(version: &str, new: Option<&str>, task: Option<BmcTask>) -> Observed {
    let (version, tasks) = (Some(version.to_owned()), Some(vec!["t1".to_owned()]));
    let update = UpdateSeen { version, tasks, new: new.map(str::to_owned), task };
    Observed { firmware: FirmwareSeen::Is(update), ..seen() }
}

/// The tasks that follow the decision, and the stage of the current update.
fn after(node: &Node, seen: &Observed, after_secs: i64) -> (Option<UpdateStage>, Vec<Task>) {
    let now = T0 + jiff::SignedDuration::from_secs(after_secs);
    let Some(update) = planned(node, seen, now).change else { return (None, Vec::new()) };
    assert_eq!(update.node.failure, None);
    let Some(work) = update.node.work else { return (None, Vec::new()) };
    let stage = match work.task() {
        Some(Task::UpdateFirmware(update)) => Some(update.stage.clone()),
        _ => None,
    };
    (stage, work.tasks[1..].to_vec())
}

#[test]
fn the_updates_of_a_step_become_tasks() {
    let node = at(Task::Step(step(&["bios", "bmc"])), None);
    let next = concluded(&node, &ActionOutcome::FirmwareChecked(2), T0).change.unwrap().node;
    let tasks = &next.work.as_ref().unwrap().tasks[1..];
    let told: Vec<_> = tasks.iter().map(Task::describe).collect();
    let want = [
        "updating the firmware of bios",
        "updating the firmware of bmc",
        "reading the versions of the firmware",
    ];
    assert_eq!(told, want);
}

#[test]
fn the_intent_is_recorded_before_the_bmc_is_asked() {
    let node = updating(&["bios"], UpdateStage::Ready);
    let decision = planned(&node, &firmware("1", None, None), T0);
    assert_eq!(decision.actions, [Action::UpdateFirmware]);
    let (stage, _) = after(&node, &firmware("1", None, None), 0);
    assert_eq!(stage, Some(asking(Some(&["t1"]))));
}

#[test]
fn an_interrupted_request_is_repeated_only_if_the_bmc_did_not_get_it() {
    let node = updating(&["bios"], asking(Some(&["t1"])));
    check(&node, firmware("1", None, None), 15, expect!["Wait(1 s)"]);
    check(&node, firmware("1", None, None), 16, expect!["Act(UpdateFirmware)"]);
    let (stage, _) = after(&node, &firmware("1", Some("t2"), None), 1);
    assert_eq!(stage, Some(accepted(false)));
    let (stage, _) = after(&node, &firmware("2", None, None), 1);
    let Some(UpdateStage::Accepted(update)) = stage else { panic!("{stage:?}") };
    assert_eq!(update.task, None);
    let node = updating(&["bios"], asking(None));
    check(
        &node,
        firmware("1", None, None),
        16,
        expect![
            "GiveUp(StepFailed: the service was interrupted while it requested the update of the firmware of bios, and the BMC lists no tasks that tell whether it got the request)"
        ],
    );
}

#[test]
fn a_busy_bmc_is_asked_again_until_the_timeout() {
    let node = updating(&["bios"], asking(Some(&[])));
    let refused = |transient| ActionOutcome::UpdateRefused(problem(transient));
    let decision = concluded(&node, &refused(true), T0 + timeouts().bmc);
    assert_eq!(decision.next_turn, Requeue::After(timeouts().poll_every));
    let later = decision.change.unwrap().node;
    let Some(Task::UpdateFirmware(update)) = later.work.as_ref().unwrap().task() else { panic!() };
    assert_eq!(update.stage, UpdateStage::Ready);
    let late = T0 + Duration::from_secs(61);
    for (outcome, now) in [(refused(false), T0), (refused(true), late)] {
        assert!(concluded(&node, &outcome, now).change.unwrap().node.failure.is_some());
    }
}

#[test]
fn the_machine_is_restarted_when_the_component_can_use_it() {
    let restart = [Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    let follows = |component, task, secs| {
        let node = updating(&[component], accepted(false));
        after(&node, &firmware("1", None, Some(task)), secs).1
    };
    let restarts = |component, task, secs| {
        let tasks = follows(component, task, secs);
        if let Some(watched) = tasks.last() {
            assert_eq!(tasks[..2], restart);
            let (step, stage) = (step(&[component]), accepted(true));
            let update = UpdateInProgress { step, number: 0, stage };
            assert_eq!(*watched, Task::UpdateFirmware(Box::new(update)));
        }
        !tasks.is_empty()
    };
    assert!(!restarts("bios", BmcTask::New, 0));
    for task in [BmcTask::Waiting, BmcTask::Done, BmcTask::Gone] {
        assert!(restarts("bios", task, 0));
    }
    assert!(!restarts("bios", BmcTask::Running, 300));
    assert!(restarts("bios", BmcTask::Running, 301));
    assert!(!restarts("nic:1", BmcTask::Waiting, 30));
    assert!(restarts("nic:1", BmcTask::Waiting, 31));
    assert!(!restarts("nic:1", BmcTask::Running, 31));
    assert!(restarts("nic:1", BmcTask::Done, 0));
    assert!(!restarts("bmc", BmcTask::Done, 300));
    assert!(restarts("bmc", BmcTask::Done, 301));
    assert!(!restarts("bmc", BmcTask::Running, 301));
}

#[test]
fn an_update_is_done_once_its_task_has_ended_or_the_bmc_runs_another_version() {
    let ends = |components: &[&str], restarted, version: &str, task| {
        let node = updating(components, accepted(restarted));
        let decision = planned(&node, &firmware(version, None, Some(task)), T0);
        let work = decision.change.and_then(|update| update.node.work);
        work.is_some_and(|work| work.cursor == 1 && work.tasks.len() == 1)
    };
    assert!(ends(&["bios"], true, "1", BmcTask::Done));
    assert!(ends(&["nic:1"], true, "1", BmcTask::Gone));
    assert!(!ends(&["bios"], true, "1", BmcTask::Waiting));
    assert!(ends(&["bmc"], false, "2", BmcTask::Done));
    assert!(!ends(&["bmc", "bios"], false, "2", BmcTask::Done), "the machine restarts first");
    assert!(ends(&["bmc", "bios"], true, "2", BmcTask::Done));
}

#[test]
fn a_task_that_fails_or_never_ends_fails_the_step() {
    let node = updating(&["bios"], accepted(true));
    check(
        &node,
        firmware("1", None, Some(BmcTask::Failed("no".to_owned()))),
        0,
        expect!["GiveUp(StepFailed: the update of the firmware of bios failed: no)"],
    );
    let silent = || Observed { firmware: FirmwareSeen::Failed(problem(true)), ..seen() };
    check(&node, silent(), 7200, expect!["Wait(1 s)"]);
    let refuses = Problem { reason: Reason::BmcRefusesUs, ..problem(false) };
    check(
        &node,
        Observed { firmware: FirmwareSeen::Failed(refuses), ..seen() },
        0,
        expect!["GiveUp(BmcRefusesUs: cannot reach the BMC)"],
    );
    let never =
        "GiveUp(StepTimedOut: the update of the firmware of bios did not end within 7200 s)";
    let late = T0 + Duration::from_secs(7201);
    for seen in [silent(), firmware("1", None, Some(BmcTask::Running))] {
        assert_eq!(text(&node, &planned(&node, &seen, late)), never);
    }
}

#[test]
fn an_update_that_the_bmc_may_have_begun_cannot_be_aborted() {
    let abort = |stage| {
        let node = updating(&["bios"], stage);
        request_verb(&node, Verb::Abort, WorkUuid::nil(), T0).map(drop)
    };
    assert_eq!(abort(UpdateStage::Ready), Ok(()));
    for stage in [asking(None), accepted(false)] {
        let refused = abort(stage).unwrap_err();
        assert!(matches!(refused, RequestRefused::NotAbortable { .. }), "{refused}");
    }
}
