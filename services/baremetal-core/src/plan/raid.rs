//! Plans the next step of a change of a RAID volume: the BMC is asked once, its task is watched, and the machine is restarted if the change
//! happens only then.

use std::time::Duration;

use hardware::{ApplyTime, BmcTask};
use jiff::Timestamp;

use super::action::Action;
use super::seen::{Observed, RaidChangeSeen, RaidSeen};
use super::turn::{MachineTurn, Planned};
use crate::{
    APPLY_RAID, AcceptedRaidChange, Failure, Node, Problem, RaidChange, RaidStage, Reason, Task,
    VolumeChange, Work, elapsed,
};

/// How long the task of a change may wait before the machine is restarted for it, and how long a change may stay invisible after its task.
const RESTART_AFTER: Duration = Duration::from_secs(30);

/// How long a change may stay invisible after the restart and after the end of its task.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(300);

/// Begins the changes of a step that were checked. The record of the RAID is emptied before volumes are deleted: a failure on the way leaves
/// no volume in the record that is not there.
pub(super) fn raid_checked<A>(turn: &MachineTurn<'_>, changes: &[VolumeChange]) -> Planned<A> {
    let mut node = turn.node.clone();
    if changes.iter().any(|change| matches!(change, VolumeChange::Delete { .. })) {
        node.raid_config.clear();
    }
    if let Some(work) = &mut node.work {
        // As in Ironic, the configuration of a step becomes the target of the node.
        let step = work.task().and_then(Task::step).filter(|step| step.name.step == APPLY_RAID);
        let config = step.and_then(|step| step.args.get("raid_config")?.as_object().cloned());
        work.change_raid(changes);
        node.target_raid_config = config.unwrap_or(node.target_raid_config);
    }
    turn.next_task_of(&node)
}

/// Decides the next step of a change.
pub(super) fn plan_raid_change(
    turn: &MachineTurn<'_>,
    work: &Work,
    current: &RaidChange,
    seen: &Observed,
) -> Planned {
    let timeouts = turn.rules.timeouts;
    let late = |since: Timestamp, limit| elapsed(since.max(seen.watching_since), turn.now) > limit;
    match (&current.stage, &seen.raid) {
        (RaidStage::Accepted(accepted), _) if late(accepted.at, timeouts.firmware) => {
            let doing = current.change.describe();
            let limit = timeouts.firmware.as_secs();
            let cause = format!("{doing} did not end within {limit} s");
            turn.give_up(Failure::new(Reason::StepTimedOut, cause))
        }
        (_, RaidSeen::NotSeen) => turn.look_again(),
        // While a machine starts, its BMC may show no storage.
        (RaidStage::Accepted(_), RaidSeen::Failed(problem))
            if problem.reason != Reason::BmcRefusesUs =>
        {
            turn.look_again()
        }
        (_, RaidSeen::Failed(problem)) => {
            turn.retry_or_give_up(problem, late(work.task_started_at, timeouts.bmc))
        }
        (RaidStage::Ready, RaidSeen::Is(seen)) => {
            let tasks = seen.tasks.clone();
            let volumes = seen.volumes.iter().map(|volume| volume.path.clone()).collect();
            ask(turn, RaidStage::Asking { tasks, volumes, at: turn.now })
        }
        (RaidStage::Asking { tasks, volumes, at }, RaidSeen::Is(seen)) => {
            if seen.new.is_some() || current.change.has_happened(&seen.volumes, volumes) {
                return write(turn, accept(seen.new.clone(), volumes.clone(), *at));
            }
            // The BMC may still be reading the request that was sent before the interruption.
            if !late(*at, timeouts.ask_again) {
                return turn.look_again();
            }
            if tasks.is_none() && matches!(current.change, VolumeChange::Create { .. }) {
                return turn.give_up(unknown(&current.change));
            }
            let (tasks, volumes) = (tasks.clone(), volumes.clone());
            ask(turn, RaidStage::Asking { tasks, volumes, at: turn.now })
        }
        (RaidStage::Accepted(accepted), RaidSeen::Is(seen)) => {
            follow(turn, current, accepted, seen, &late)
        }
    }
}

/// Asks the BMC for the change, after the intent was recorded.
fn ask(turn: &MachineTurn<'_>, asking: RaidStage) -> Planned {
    turn.intend(with_stage(turn.node, asking), Action::ChangeRaid)
}

fn accept(task: Option<String>, volumes: Vec<String>, at: Timestamp) -> RaidStage {
    RaidStage::Accepted(AcceptedRaidChange { task, volumes, at, ended_at: None, restarted: false })
}

/// Records that the BMC accepted the change, with its task.
pub(super) fn raid_change_accepted<A>(turn: &MachineTurn<'_>, task: Option<&str>) -> Planned<A> {
    let current = turn.node.work.as_ref().and_then(Work::task);
    let Some(Task::ChangeRaid(current)) = current else { return turn.look_again() };
    let RaidStage::Asking { volumes, .. } = &current.stage else { return turn.look_again() };
    write(turn, accept(task.map(str::to_owned), volumes.clone(), turn.now))
}

/// Asks again later if the BMC refused because it was busy.
pub(super) fn raid_change_refused<A>(
    turn: &MachineTurn<'_>,
    problem: &Problem,
    watching_since: Timestamp,
) -> Planned<A> {
    if turn.is_final(problem, watching_since) {
        return turn.give_up(problem.clone().into());
    }
    write(turn, RaidStage::Ready)
}

/// Decides the next step once the BMC has accepted the change.
fn follow(
    turn: &MachineTurn<'_>,
    current: &RaidChange,
    accepted: &AcceptedRaidChange,
    seen: &RaidChangeSeen,
    late: &dyn Fn(Timestamp, Duration) -> bool,
) -> Planned {
    let doing = || current.change.describe();
    if let Some(BmcTask::Failed(why)) = &seen.task {
        let cause = format!("{} failed: {why}", doing());
        return turn.give_up(Failure::new(Reason::StepFailed, cause));
    }
    let has_ended = seen.task.as_ref().is_none_or(BmcTask::has_ended_well);
    let has_happened = current.change.has_happened(&seen.volumes, &accepted.volumes);
    // A BMC may list a volume as deleted, or a new one, before its task has ended.
    if has_ended && has_happened {
        return done(turn, current, accepted, seen);
    }
    let waits_for_start = match &seen.task {
        Some(BmcTask::Running) => false,
        Some(BmcTask::New) => late(accepted.at, RESTART_AFTER),
        Some(BmcTask::Waiting | BmcTask::Done | BmcTask::Gone | BmcTask::Failed(_)) | None => {
            current.change.applies() == ApplyTime::OnReset || late(accepted.at, RESTART_AFTER)
        }
    };
    match (accepted.restarted, accepted.ended_at) {
        (false, _) if waits_for_start => restart(turn, current, accepted),
        (_, None) if has_ended => {
            let ended_at = Some(turn.now);
            write(turn, RaidStage::Accepted(AcceptedRaidChange { ended_at, ..accepted.clone() }))
        }
        (true, Some(ended_at)) if has_ended && late(ended_at, EFFECT_TIMEOUT) => {
            let cause = format!(
                "{} had no effect: the BMC accepted the change, reports no failure, and lists the same volumes as before",
                doing()
            );
            turn.give_up(Failure::new(Reason::StepFailed, cause))
        }
        (_, _) => turn.look_again(),
    }
}

/// Restarts the machine, and watches the change further.
fn restart(turn: &MachineTurn<'_>, current: &RaidChange, accepted: &AcceptedRaidChange) -> Planned {
    let accepted = AcceptedRaidChange { restarted: true, ended_at: None, ..accepted.clone() };
    let stage = RaidStage::Accepted(accepted);
    let watched = Task::ChangeRaid(Box::new(RaidChange { stage, ..current.clone() }));
    let mut node = turn.node.clone();
    if let Some(work) = &mut node.work {
        work.restart_and(watched);
    }
    turn.next_task_of(&node)
}

/// Ends the change. A new root volume is noted for the record of the RAID.
fn done(
    turn: &MachineTurn<'_>,
    current: &RaidChange,
    accepted: &AcceptedRaidChange,
    seen: &RaidChangeSeen,
) -> Planned {
    let mut node = turn.node.clone();
    if let (Some(work), VolumeChange::Create { is_root: true, .. }) =
        (&mut node.work, &current.change)
        && let Some(made) = current.change.made(&seen.volumes, &accepted.volumes)
    {
        work.note_root_volume(&made.path);
    }
    turn.next_task_of(&node)
}

/// Writes the stage of the current change, and looks again after a while.
fn write<A>(turn: &MachineTurn<'_>, stage: RaidStage) -> Planned<A> {
    turn.write_and_look_again(with_stage(turn.node, stage))
}

fn with_stage(node: &Node, stage: RaidStage) -> Node {
    let mut node = node.clone();
    if let Some(Task::ChangeRaid(current)) = node.work.as_mut().and_then(Work::task_mut) {
        current.stage = stage;
    }
    node
}

fn unknown(change: &VolumeChange) -> Failure {
    let cause = format!(
        "the service was interrupted while {}, and the BMC lists neither the volume nor tasks that tell whether it got the request",
        change.describe()
    );
    Failure::new(Reason::StepFailed, cause)
}
