//! Plans the next step of a firmware update: the BMC is asked once, its task is watched, and the machine is restarted if the component
//! needs that. The order is Ironic's (`ironic/drivers/modules/redfish/firmware.py`).

use std::time::Duration;

use hardware::BmcTask;
use jiff::Timestamp;

use super::action::Action;
use super::seen::{FirmwareSeen, Observed, UpdateSeen};
use super::turn::{MachineTurn, Planned};
use crate::{
    AcceptedUpdate, ComponentKind, Failure, FirmwareUpdate, Node, Problem, Reason, Task,
    UpdateInProgress, UpdateStage, Work, elapsed,
};

/// How long a BMC may take to run its new version, unless the client says, and how long the task of a BIOS may run before the machine is
/// restarted for it (ironic, `firmware_update_reboot_delay`).
const EFFECT_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the task of an adapter may wait before the machine is restarted for it (ironic, `firmware_update_nic_starting_wait`).
const ADAPTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Begins the updates of a step whose argument was checked.
pub(super) fn firmware_checked<A>(turn: &MachineTurn<'_>, updates: usize) -> Planned<A> {
    let mut node = turn.node.clone();
    if let Some(work) = &mut node.work {
        work.update_firmware(updates);
    }
    turn.next_task_of(&node)
}

/// Decides the next step of an update.
pub(super) fn plan_update(
    turn: &MachineTurn<'_>,
    work: &Work,
    update: &UpdateInProgress,
    seen: &Observed,
) -> Planned {
    let wanted = match update.wanted() {
        Ok(wanted) => wanted,
        Err(why) => return turn.give_up(Failure::new(Reason::BadRequest, why.to_string())),
    };
    let timeouts = turn.rules.timeouts;
    let late = |since: Timestamp, limit| elapsed(since.max(seen.watching_since), turn.now) > limit;
    match (&update.stage, &seen.firmware) {
        (UpdateStage::Accepted(accepted), _) if late(accepted.at, timeouts.firmware) => {
            let cause = format!(
                "the update of the firmware of {} did not end within {} s",
                wanted.component,
                timeouts.firmware.as_secs()
            );
            turn.give_up(Failure::new(Reason::StepTimedOut, cause))
        }
        (_, FirmwareSeen::NotSeen) => turn.look_again(),
        // A BMC that updates firmware may restart itself, and answer nothing or nonsense meanwhile.
        (UpdateStage::Accepted(_), FirmwareSeen::Failed(problem))
            if problem.reason != Reason::BmcRefusesUs =>
        {
            turn.look_again()
        }
        (_, FirmwareSeen::Failed(problem)) => {
            turn.retry_or_give_up(problem, late(work.task_started_at, timeouts.bmc))
        }
        (UpdateStage::Ready, FirmwareSeen::Is(seen)) => {
            let (known, version) = (seen.tasks.clone(), seen.version.clone());
            ask(turn, UpdateStage::Asking { known, version, at: turn.now })
        }
        (UpdateStage::Asking { known, version, at }, FirmwareSeen::Is(seen)) => {
            let has_changed = seen.version.is_some() && seen.version != *version;
            if seen.new.is_some() || has_changed {
                let (task, version) = (seen.new.clone(), version.clone());
                let accepted = AcceptedUpdate { task, version, at: *at, restarted: false };
                return write(turn, UpdateStage::Accepted(accepted));
            }
            // The BMC may still be reading the request that was sent before the interruption.
            if !late(*at, timeouts.ask_again) {
                return turn.look_again();
            }
            if known.is_none() {
                return turn.give_up(unknown(&wanted));
            }
            let (known, version) = (known.clone(), version.clone());
            ask(turn, UpdateStage::Asking { known, version, at: turn.now })
        }
        (UpdateStage::Accepted(accepted), FirmwareSeen::Is(seen)) => {
            follow(turn, update, &wanted, accepted, seen)
        }
    }
}

/// Asks the BMC for the update, after the intent was recorded.
fn ask(turn: &MachineTurn<'_>, asking: UpdateStage) -> Planned {
    turn.intend(with_stage(turn.node, asking), Action::UpdateFirmware)
}

/// Records that the BMC accepted the update, with its task.
pub(super) fn update_accepted<A>(turn: &MachineTurn<'_>, task: Option<&str>) -> Planned<A> {
    let current = turn.node.work.as_ref().and_then(Work::task);
    let Some(Task::UpdateFirmware(update)) = current else { return turn.look_again() };
    let version = match &update.stage {
        UpdateStage::Asking { version, .. } => version.clone(),
        UpdateStage::Ready | UpdateStage::Accepted(_) => None,
    };
    let task = task.map(str::to_owned);
    let accepted = AcceptedUpdate { task, version, at: turn.now, restarted: false };
    write(turn, UpdateStage::Accepted(accepted))
}

/// Asks again later if the BMC refused because it was busy.
pub(super) fn update_refused<A>(
    turn: &MachineTurn<'_>,
    problem: &Problem,
    watching_since: Timestamp,
) -> Planned<A> {
    if turn.is_final(problem, watching_since) {
        return turn.give_up(problem.clone().into());
    }
    write(turn, UpdateStage::Ready)
}

/// Decides the next step once the BMC has accepted the update: the machine is restarted as soon as the component can use it.
fn follow(
    turn: &MachineTurn<'_>,
    update: &UpdateInProgress,
    wanted: &FirmwareUpdate,
    accepted: &AcceptedUpdate,
    seen: &UpdateSeen,
) -> Planned {
    let task = seen.task.as_ref();
    if let Some(BmcTask::Failed(why)) = task {
        let cause = format!("the update of the firmware of {} failed: {why}", wanted.component);
        return turn.give_up(Failure::new(Reason::StepFailed, cause));
    }
    let has_ended = task.is_none_or(BmcTask::has_ended_well);
    let waits = |limit: Duration| elapsed(accepted.at, turn.now) <= limit;
    match (wanted.kind(), accepted.restarted) {
        (ComponentKind::Bios | ComponentKind::Nic, true) if has_ended => done(turn, wanted.wait),
        (ComponentKind::Bmc, true) => done(turn, None),
        (ComponentKind::Bios, false) => match task {
            Some(BmcTask::New) => turn.look_again(),
            // The BMC may still be fetching the image. Some BMCs show this state until the machine starts.
            Some(BmcTask::Running) if waits(EFFECT_TIMEOUT) => turn.look_again(),
            Some(_) | None => restart(turn, update, accepted),
        },
        (ComponentKind::Nic, false) if has_ended => restart(turn, update, accepted),
        (ComponentKind::Nic, false) => match task {
            Some(BmcTask::Waiting) if !waits(ADAPTER_TIMEOUT) => restart(turn, update, accepted),
            Some(_) | None => turn.look_again(),
        },
        (ComponentKind::Bmc, false) if has_ended => {
            let has_changed = seen.version.is_some() && seen.version != accepted.version;
            let limit = wanted.wait.map(|seconds| Duration::from_secs(seconds.into()));
            match (has_changed, update.has_more()) {
                (true, false) => done(turn, None),
                // Some machines update an adapter only after a restart that follows the update of the BMC.
                (true, true) => restart(turn, update, accepted),
                (false, _) if waits(limit.unwrap_or(EFFECT_TIMEOUT)) => turn.look_again(),
                (false, _) => restart(turn, update, accepted),
            }
        }
        (ComponentKind::Bmc, false) | (ComponentKind::Bios | ComponentKind::Nic, true) => {
            turn.look_again()
        }
    }
}

/// Restarts the machine, and watches the update further.
fn restart(
    turn: &MachineTurn<'_>,
    update: &UpdateInProgress,
    accepted: &AcceptedUpdate,
) -> Planned {
    let accepted = AcceptedUpdate { restarted: true, ..accepted.clone() };
    let stage = UpdateStage::Accepted(accepted);
    let watched = Task::UpdateFirmware(Box::new(UpdateInProgress { stage, ..update.clone() }));
    let mut node = turn.node.clone();
    if let Some(work) = &mut node.work {
        work.restart_and(watched);
    }
    turn.next_task_of(&node)
}

/// Ends the update, after a pause if the client wants one.
fn done(turn: &MachineTurn<'_>, wait: Option<u32>) -> Planned {
    let mut node = turn.node.clone();
    if let (Some(work), Some(seconds)) = (&mut node.work, wait) {
        work.do_next([Task::Wait { seconds }]);
    }
    turn.next_task_of(&node)
}

/// Writes the stage of the current update, and looks again after a while.
fn write<A>(turn: &MachineTurn<'_>, stage: UpdateStage) -> Planned<A> {
    turn.write_and_look_again(with_stage(turn.node, stage))
}

fn with_stage(node: &Node, stage: UpdateStage) -> Node {
    let mut node = node.clone();
    if let Some(Task::UpdateFirmware(update)) = node.work.as_mut().and_then(Work::task_mut) {
        update.stage = stage;
    }
    node
}

fn unknown(wanted: &FirmwareUpdate) -> Failure {
    let cause = format!(
        "the service was interrupted while it requested the update of the firmware of {}, and the BMC lists no tasks that tell whether it \
         got the request",
        wanted.component
    );
    Failure::new(Reason::StepFailed, cause)
}
