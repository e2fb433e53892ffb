//! Changes of RAID volumes.

use hardware::{ApplyTime, BmcTask, NewVolume, RaidLevel, RaidVolume};
use serde_json::json;

use super::*;
use crate::{AcceptedRaidChange, RaidChange, RaidStage, VolumeChange};

fn step(name: &str) -> Step {
    let config = json!({"logical_disks": [{"size_gb": 1, "raid_level": "1"}]});
    Step {
        kind: StepKind::Clean,
        runner: StepRunner::Conductor,
        name: StepName { interface: Interface::Raid, step: name.to_owned() },
        args: Map::from_iter([("raid_config".to_owned(), config)]),
        priority: 0,
        reboots: false,
        children: None,
    }
}

fn deletion() -> VolumeChange {
    VolumeChange::Delete {
        storage: "/s".to_owned(),
        volume: "/v/1".to_owned(),
        label: "old".to_owned(),
        applies: ApplyTime::Immediate,
    }
}

fn creation(applies: ApplyTime) -> VolumeChange {
    let volume = NewVolume {
        storage: "/s".to_owned(),
        level: RaidLevel::Raid1,
        drives: ["/d/1", "/d/2"].map(str::to_owned).to_vec(),
        size_bytes: None,
        name: "ours".to_owned(),
        name_is_optional: true,
        applies,
    };
    VolumeChange::Create { volume, is_root: true }
}

/// A node at this change, with the look at the volumes after it.
fn changing(change: VolumeChange, stage: RaidStage) -> Node {
    let step = step("create_configuration");
    let current = RaidChange { step: step.clone(), change, stage };
    let mut node = at(Task::ChangeRaid(Box::new(current)), None);
    node.provision_state = State::CleanWait;
    let read = Task::ReadRaid { step, started_at: T0, root: None };
    node.work.as_mut().unwrap().tasks.push(read);
    node
}

fn asking(tasks: Option<&[&str]>) -> RaidStage {
    let tasks = tasks.map(|tasks| tasks.iter().map(|task| (*task).to_owned()).collect());
    RaidStage::Asking { tasks, volumes: vec!["/v/1".to_owned()], at: T0 }
}

fn accepted(restarted: bool, ended_at: Option<Timestamp>) -> RaidStage {
    let (task, volumes) = (Some("t2".to_owned()), vec!["/v/1".to_owned()]);
    RaidStage::Accepted(AcceptedRaidChange { task, volumes, at: T0, ended_at, restarted })
}

/// An observation of the volumes with these numbers.
fn raid(volumes: &[&str], new: Option<&str>, task: Option<BmcTask>) -> Observed {
    let volume = |number: &&str| RaidVolume {
        id: (*number).to_owned(),
        path: format!("/v/{number}"),
        name: Some(if *number == "1" { "old" } else { "ours" }.to_owned()),
        is_raid: true,
        level: Some(RaidLevel::Raid1),
        size_bytes: Some(1),
        drives: Vec::new(),
    };
    let change = RaidChangeSeen {
        volumes: volumes.iter().map(volume).collect(),
        tasks: Some(vec!["t1".to_owned()]),
        new: new.map(str::to_owned),
        task,
    };
    Observed { raid: RaidSeen::Is(change), ..seen() }
}

/// The stage of the current change, and the tasks that come after the current one.
fn after(node: &Node, seen: &Observed, after_secs: i64) -> (Option<RaidStage>, Vec<Task>) {
    let now = T0 + jiff::SignedDuration::from_secs(after_secs);
    let Some(update) = planned(node, seen, now).change else { return (None, Vec::new()) };
    assert_eq!(update.node.failure, None);
    let work = update.node.work.unwrap();
    let stage = match work.task() {
        Some(Task::ChangeRaid(change)) => Some(change.stage.clone()),
        _ => None,
    };
    (stage, work.tasks[work.cursor..].to_vec())
}

#[test]
fn the_changes_of_a_step_become_tasks_and_the_record_is_emptied_before_a_deletion() {
    let mut node = at(Task::Step(step("apply_configuration")), None);
    node.raid_config = Map::from_iter([("logical_disks".to_owned(), json!([]))]);
    let tasks = |changes: Vec<VolumeChange>| {
        let outcome = ActionOutcome::RaidChecked(changes);
        let next = concluded(&node, &outcome, T0).change.unwrap().node;
        let tasks = &next.work.as_ref().unwrap().tasks[1..];
        let tasks: Vec<String> = tasks.iter().map(|task| task.describe().into_owned()).collect();
        (tasks.join(", "), next)
    };
    let create = creation(ApplyTime::Immediate);
    let (told, next) = tasks(vec![create.clone()]);
    assert_eq!(told, "making the volume ours, reading the RAID volumes");
    assert!(!next.raid_config.is_empty());
    assert_eq!(next.target_raid_config["logical_disks"][0]["raid_level"], "1");
    let (told, next) = tasks(vec![deletion(), create]);
    assert_eq!(told, "deleting the volume old, making the volume ours, reading the RAID volumes");
    assert!(next.raid_config.is_empty());
    assert_eq!(tasks(Vec::new()).0, "reading the RAID volumes");
}

#[test]
fn the_intent_is_recorded_before_the_bmc_is_asked() {
    let node = changing(creation(ApplyTime::Immediate), RaidStage::Ready);
    let decision = planned(&node, &raid(&["1"], None, None), T0);
    assert_eq!(decision.actions, [Action::ChangeRaid]);
    let (stage, _) = after(&node, &raid(&["1"], None, None), 0);
    assert_eq!(stage, Some(asking(Some(&["t1"]))));
}

#[test]
fn an_interrupted_request_is_repeated_only_if_the_bmc_did_not_get_it() {
    let node = changing(creation(ApplyTime::Immediate), asking(Some(&["t1"])));
    check(&node, raid(&["1"], None, None), 15, expect!["Wait(1 s)"]);
    check(&node, raid(&["1"], None, None), 16, expect!["Act(ChangeRaid)"]);
    let (stage, _) = after(&node, &raid(&["1"], Some("t2"), None), 1);
    assert_eq!(stage, Some(accepted(false, None)));
    let (stage, _) = after(&node, &raid(&["1", "2"], None, None), 1);
    let Some(RaidStage::Accepted(change)) = stage else { panic!("{stage:?}") };
    assert_eq!(change.task, None);
    let node = changing(creation(ApplyTime::Immediate), asking(None));
    check(
        &node,
        raid(&["1"], None, None),
        16,
        expect![
            "GiveUp(StepFailed: the service was interrupted while making the volume ours, and the BMC lists neither the volume nor tasks that tell whether it got the request)"
        ],
    );
    let node = changing(deletion(), asking(None));
    check(&node, raid(&["1"], None, None), 16, expect!["Act(ChangeRaid)"]);
    let (stage, _) = after(&node, &raid(&[], None, None), 1);
    assert!(matches!(stage, Some(RaidStage::Accepted(_))), "{stage:?}");
}

#[test]
fn a_busy_bmc_is_asked_again_until_the_timeout() {
    let node = changing(deletion(), asking(Some(&[])));
    let refused = |transient| ActionOutcome::RaidChangeRefused(problem(transient));
    let decision = concluded(&node, &refused(true), T0 + timeouts().bmc);
    assert_eq!(decision.next_turn, Requeue::After(timeouts().poll_every));
    let later = decision.change.unwrap().node;
    let Some(Task::ChangeRaid(change)) = later.work.as_ref().unwrap().task() else { panic!() };
    assert_eq!(change.stage, RaidStage::Ready);
    let late = T0 + Duration::from_secs(61);
    for (outcome, now) in [(refused(false), T0), (refused(true), late)] {
        assert!(concluded(&node, &outcome, now).change.unwrap().node.failure.is_some());
    }
}

#[test]
fn a_change_is_done_once_its_task_has_ended_and_the_volumes_show_it() {
    let root = |tasks: &[Task]| match tasks {
        [Task::ReadRaid { root, .. }] => Some(root.clone()),
        _ => None,
    };
    let ends = |change: VolumeChange, volumes: &[&str], task: Option<BmcTask>| {
        root(&after(&changing(change, accepted(false, None)), &raid(volumes, None, task), 0).1)
    };
    let create = || creation(ApplyTime::Immediate);
    assert_eq!(ends(create(), &["1", "2"], Some(BmcTask::Done)), Some(Some("/v/2".to_owned())));
    assert_eq!(ends(create(), &["1", "2"], None), Some(Some("/v/2".to_owned())));
    assert_eq!(ends(create(), &["1", "2"], Some(BmcTask::Running)), None);
    assert_eq!(ends(create(), &["1"], Some(BmcTask::Gone)), None);
    assert_eq!(ends(deletion(), &[], Some(BmcTask::Gone)), Some(None));
    assert_eq!(ends(deletion(), &["1"], Some(BmcTask::Done)), None);
}

#[test]
fn the_machine_is_restarted_for_a_change_that_happens_only_then() {
    let restart = [Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    let restarts = |applies, task, secs| {
        let node = changing(creation(applies), accepted(false, Some(T0)));
        let tasks = after(&node, &raid(&["1"], None, task), secs).1;
        let restarts = tasks.starts_with(&restart);
        if restarts {
            let (step, change) = (step("create_configuration"), creation(applies));
            let watched = RaidChange { step, change, stage: accepted(true, None) };
            assert_eq!(tasks[2], Task::ChangeRaid(Box::new(watched)));
        }
        restarts
    };
    assert!(restarts(ApplyTime::OnReset, Some(BmcTask::Waiting), 0));
    assert!(restarts(ApplyTime::OnReset, None, 0));
    assert!(!restarts(ApplyTime::OnReset, Some(BmcTask::New), 30));
    assert!(restarts(ApplyTime::OnReset, Some(BmcTask::New), 31));
    for task in [Some(BmcTask::Waiting), Some(BmcTask::Done), None] {
        assert!(!restarts(ApplyTime::Immediate, task.clone(), 30), "{task:?}");
        assert!(restarts(ApplyTime::Immediate, task.clone(), 31), "{task:?}");
    }
    assert!(!restarts(ApplyTime::OnReset, Some(BmcTask::Running), 31));
}

#[test]
fn a_task_that_fails_or_never_ends_or_does_nothing_fails_the_step() {
    let node = changing(creation(ApplyTime::Immediate), accepted(true, None));
    check(
        &node,
        raid(&["1"], None, Some(BmcTask::Failed("no".to_owned()))),
        0,
        expect!["GiveUp(StepFailed: making the volume ours failed: no)"],
    );
    let silent = || Observed { raid: RaidSeen::Failed(problem(true)), ..seen() };
    check(&node, silent(), 7200, expect!["Wait(1 s)"]);
    let refuses = Problem { reason: Reason::BmcRefusesUs, ..problem(false) };
    check(
        &node,
        Observed { raid: RaidSeen::Failed(refuses), ..seen() },
        0,
        expect!["GiveUp(BmcRefusesUs: cannot reach the BMC)"],
    );
    check(&node, raid(&["1"], None, Some(BmcTask::Running)), 5, expect!["Wait(1 s)"]);
    let never = "GiveUp(StepTimedOut: making the volume ours did not end within 7200 s)";
    let late = T0 + Duration::from_secs(7201);
    for seen in [silent(), raid(&["1"], None, Some(BmcTask::Running))] {
        assert_eq!(text(&node, &planned(&node, &seen, late)), never);
    }
    let (stage, _) = after(&node, &raid(&["1"], None, Some(BmcTask::Done)), 5);
    assert_eq!(stage, Some(accepted(true, Some(T0 + Duration::from_secs(5)))));
    let node = changing(creation(ApplyTime::Immediate), accepted(true, Some(T0)));
    check(&node, raid(&["1"], None, Some(BmcTask::Done)), 300, expect!["Wait(1 s)"]);
    check(
        &node,
        raid(&["1"], None, Some(BmcTask::Done)),
        301,
        expect![
            "GiveUp(StepFailed: making the volume ours had no effect: the BMC accepted the change, reports no failure, and lists the same volumes as before)"
        ],
    );
}

#[test]
fn a_change_that_the_bmc_may_have_begun_cannot_be_aborted() {
    let abort = |stage| {
        let node = changing(deletion(), stage);
        request_verb(&node, Verb::Abort, WorkUuid::nil(), T0).map(drop)
    };
    assert_eq!(abort(RaidStage::Ready), Ok(()));
    for stage in [asking(None), accepted(false, None)] {
        let refused = abort(stage).unwrap_err();
        assert!(matches!(refused, RequestRefused::NotAbortable { .. }), "{refused}");
    }
}
