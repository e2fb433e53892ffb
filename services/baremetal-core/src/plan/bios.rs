//! Plans the steps that follow a request for BIOS settings: the restart of the machine, and the look whether the firmware took them.

use jiff::Timestamp;

use super::turn::{MachineTurn, Planned};
use crate::{Failure, Reason, elapsed};

/// Begins the restart of the machine after its BMC accepted BIOS settings.
pub(super) fn bios_accepted<A>(turn: &MachineTurn<'_>) -> Planned<A> {
    let mut node = turn.node.clone();
    if let Some(work) = &mut node.work {
        work.restart_and_confirm();
    }
    turn.next_task_of(&node)
}

/// Looks again until the firmware had the time to start. With the ramdisk, the agent has reported already, so the firmware has started and
/// only the BMC may lag behind.
pub(super) fn bios_not_applied<A>(
    turn: &MachineTurn<'_>,
    what: &str,
    watching_since: Timestamp,
) -> Planned<A> {
    let Some(work) = &turn.node.work else { return turn.look_again() };
    let timeouts = turn.rules.timeouts;
    let limit = if work.boots_ramdisk() { timeouts.bmc } else { timeouts.boot };
    if elapsed(work.task_started_at.max(watching_since), turn.now) <= limit {
        return turn.look_again();
    }
    let cause = format!("the machine was restarted, and its firmware did not take {what}");
    turn.give_up(Failure::new(Reason::StepFailed, cause))
}
