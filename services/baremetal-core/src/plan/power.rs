//! Plans the next step of a change of power, requested by a caller or by a task.

use std::time::Duration;

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;

use super::action::Action;
use super::seen::{Observed, PowerSeen};
use super::turn::{MachineTurn, Planned, Timeouts};
use crate::{Failure, NodeUpdate, PowerRequest, Reason, power_step_done};

/// Decides the next step of a requested change of power.
pub(super) fn plan_power(
    turn: &MachineTurn<'_>,
    request: &PowerRequest,
    seen: &Observed,
) -> Planned {
    let (timeouts, now) = (turn.rules.timeouts, turn.now);
    let step_done = || Ok(NodeUpdate::decided(power_step_done(turn.node), []));
    let Some(change) = request.remaining.last() else { return step_done() };
    // If the conductor was down, the machine gets a full timeout from the moment the conductor watches again.
    let late = now > request.deadline.max(seen.watching_since + timeouts.power);
    match &seen.power {
        PowerSeen::Is(is) if *is == change.leads_to() => step_done(),
        PowerSeen::Is(_) if late => give_up(turn, power_stuck(change.leads_to(), timeouts.power)),
        PowerSeen::Is(_) if was_asked(request.asked_at, timeouts, now) => turn.look_again(),
        PowerSeen::Is(_) => ask(turn, *change),
        PowerSeen::Failed(problem) if problem.transient && !late => turn.look_again(),
        PowerSeen::Failed(problem) => give_up(turn, problem.clone().into()),
        PowerSeen::NotAsked => turn.look_again(),
    }
}

/// Asks the BMC for a change of power. The time is recorded before.
pub(super) fn ask(turn: &MachineTurn<'_>, change: PowerChange) -> Planned {
    let mut asked = turn.node.clone();
    match (&mut asked.work, &mut asked.power_request) {
        (Some(work), _) => work.asked_at = Some(turn.now),
        (None, Some(request)) => request.asked_at = Some(turn.now),
        (None, None) => {}
    }
    turn.intend(asked, Action::RequestPower(change))
}

fn give_up(turn: &MachineTurn<'_>, failure: Failure) -> Planned {
    let (cause, event) = (failure.cause.clone(), failure.to_string());
    let line = format!("the change of power of node {} failed", turn.node.id);
    Ok(turn.give_up_power(failure, event)?.warn_of(cause, line))
}

/// Returns whether the BMC was asked so recently that it may still be at work. A request with a time in the future says that the clock was
/// set back: the BMC is asked again, because waiting would last until the clock reaches that time.
pub(super) fn was_asked(asked_at: Option<Timestamp>, timeouts: &Timeouts, now: Timestamp) -> bool {
    asked_at.is_some_and(|at| now.duration_since(at).unsigned_abs() <= timeouts.ask_again)
}

pub(super) fn power_stuck(wanted: PowerState, limit: Duration) -> Failure {
    let cause = format!(
        "the BMC accepted \"{wanted}\", but the machine did not reach that state within {} s",
        limit.as_secs()
    );
    Failure::new(Reason::PowerStuck, cause)
}

/// The failure if the agent still answers although the BMC says that its machine is off.
pub(super) fn false_power_off(limit: Duration) -> Failure {
    let cause = format!(
        "the BMC reports \"power off\", but the agent on the machine still answers after {} s",
        limit.as_secs()
    );
    Failure::new(Reason::PowerStuck, cause)
}
