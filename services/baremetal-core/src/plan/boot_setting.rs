//! Plans the next step of a change of a boot setting: one that a caller requested, or a task of work.

use std::time::Duration;

use decision::Decision;
use hardware::{BootSetting, BootSettings, PowerChange, PowerState};
use jiff::Timestamp;

use super::action::Action;
use super::seen::{BootSettingsSeen, Observed, PowerSeen};
use super::turn::{MachineTurn, Planned};
use crate::{
    BootSettingRequest, BootSettingStage, Failure, HistoryEntry, Node, NodeUpdate, PowerRequest,
    Reason, Work, compute_host, elapsed,
};

/// Decides the next step of a requested change of a boot setting.
///
/// The BMC is asked first. If it does not report the wanted value then, the machine is restarted, because many BMCs hand the change to the
/// firmware, which applies it when the machine starts (ironic, `_wait_for_boot_mode`).
pub(super) fn plan_boot_setting(
    turn: &MachineTurn<'_>,
    request: &BootSettingRequest,
    seen: &Observed,
) -> Planned {
    let timeouts = turn.rules.timeouts;
    let late = |limit: Duration| elapsed(request.since.max(seen.watching_since), turn.now) > limit;
    let (power, settings) = match (&seen.power, &seen.boot_settings) {
        (PowerSeen::Is(power), BootSettingsSeen::Are(settings)) => (*power, *settings),
        (PowerSeen::Failed(problem), _) | (_, BootSettingsSeen::Failed(problem)) => {
            return match problem.transient && !late(timeouts.bmc) {
                true => turn.look_again(),
                false => give_up(turn, problem.clone().into()),
            };
        }
        (PowerSeen::NotAsked, _) | (PowerSeen::Is(_), BootSettingsSeen::NotSeen)
            if late(timeouts.bmc) =>
        {
            return give_up(turn, not_reported());
        }
        (PowerSeen::NotAsked, _) | (PowerSeen::Is(_), BootSettingsSeen::NotSeen) => {
            return turn.look_again();
        }
    };
    if settings.has(request.wanted) {
        return done(turn, request, power, settings);
    }
    match request.stage {
        BootSettingStage::Asking => Ok(Decision::act(Action::ChangeBootSetting(request.wanted))),
        BootSettingStage::Accepted => restart(turn, request, power),
        BootSettingStage::Restarted { .. } if late(timeouts.boot) => {
            let cause = format!(
                "the BMC accepted a change of the {}, but reports {} {} s after a restart of the machine",
                request.wanted,
                reported(request.wanted, settings),
                timeouts.boot.as_secs()
            );
            give_up(turn, Failure::new(Reason::BmcFailed, cause))
        }
        BootSettingStage::Restarted { .. } => turn.look_again(),
    }
}

/// Asks the BMC for the boot setting of a task, unless it reports the setting. Secure Boot is off on a machine that does not have it.
pub(super) fn set_boot(
    turn: &MachineTurn<'_>,
    wanted: BootSetting,
    work: &Work,
    seen: &Observed,
) -> Planned {
    match &seen.boot_settings {
        BootSettingsSeen::Are(settings) if is_in_force(wanted, *settings) => turn.next_task(seen),
        BootSettingsSeen::Are(_) => Ok(Decision::act(Action::ChangeBootSetting(wanted))),
        BootSettingsSeen::NotSeen | BootSettingsSeen::Failed(_) => unseen(turn, work, seen),
    }
}

/// Waits until the BMC of the started machine reports the boot setting of a task.
pub(super) fn confirm_boot(
    turn: &MachineTurn<'_>,
    wanted: BootSetting,
    work: &Work,
    seen: &Observed,
) -> Planned {
    let limit = turn.rules.timeouts.boot;
    match &seen.boot_settings {
        BootSettingsSeen::Are(settings) if is_in_force(wanted, *settings) => turn.next_task(seen),
        BootSettingsSeen::Are(settings) if is_late(turn, work, seen, limit) => {
            let cause = format!(
                "the machine was started to change the {wanted}, and its BMC still reports {} after {} s",
                reported(wanted, *settings),
                limit.as_secs()
            );
            turn.give_up(Failure::new(Reason::BmcFailed, cause))
        }
        BootSettingsSeen::Are(_) => turn.look_again(),
        BootSettingsSeen::NotSeen | BootSettingsSeen::Failed(_) => unseen(turn, work, seen),
    }
}

fn is_in_force(wanted: BootSetting, settings: BootSettings) -> bool {
    let is_off = wanted == BootSetting::SecureBoot(false) && settings.secure_boot.is_none();
    is_off || settings.has(wanted)
}

fn is_late(turn: &MachineTurn<'_>, work: &Work, seen: &Observed, limit: Duration) -> bool {
    elapsed(work.task_started_at.max(seen.watching_since), turn.now) > limit
}

/// The next step of a task that needs the boot settings, if the BMC did not report them.
fn unseen(turn: &MachineTurn<'_>, work: &Work, seen: &Observed) -> Planned {
    let late = is_late(turn, work, seen, turn.rules.timeouts.bmc);
    match (&seen.power, &seen.boot_settings) {
        (PowerSeen::Failed(problem), _) | (_, BootSettingsSeen::Failed(problem)) => {
            turn.retry_or_give_up(problem, late)
        }
        _ if late => turn.give_up(not_reported()),
        _ => turn.look_again(),
    }
}

fn not_reported() -> Failure {
    let cause = "the BMC did not report its boot settings in time".to_owned();
    Failure::new(Reason::BmcUnreachable, cause)
}

/// Records that the BMC accepted the change. In work, the next task begins.
pub(super) fn boot_setting_accepted<A>(turn: &MachineTurn<'_>) -> Planned<A> {
    if turn.node.work.is_some() {
        return turn.next_task_of(turn.node);
    }
    let stage = BootSettingStage::Accepted;
    let request = turn.node.boot_setting_request.as_ref();
    let request = request.map(|it| BootSettingRequest { stage, since: turn.now, ..it.clone() });
    let node = Node { boot_setting_request: request, ..turn.node.clone() };
    Ok(NodeUpdate::decided(node, []))
}

/// Ends the request: the BMC reports the wanted value. A machine that was off before its restart is switched off again.
fn done(
    turn: &MachineTurn<'_>,
    request: &BootSettingRequest,
    power: PowerState,
    settings: BootSettings,
) -> Planned {
    let mut after = turn.node.with_boot_settings(settings);
    after.boot_setting_request = None;
    let was_off = request.stage == BootSettingStage::Restarted { before: PowerState::Off };
    if was_off && power == PowerState::On {
        after.power_request = Some(power_request(turn, PowerChange::ForceOff));
    }
    let event = format!("changed the {}", request.wanted);
    let entry = HistoryEntry::changed(turn.node, &after, event, turn.now);
    Ok(NodeUpdate::decided(after, [entry]))
}

/// Restarts the machine, so that its firmware applies the change. The power state to return to is recorded before.
fn restart(turn: &MachineTurn<'_>, request: &BootSettingRequest, before: PowerState) -> Planned {
    let node = turn.node;
    let cannot = |why: String| {
        let cause = format!(
            "the BMC applies a change of the {} when the machine starts again, and {why}",
            request.wanted
        );
        give_up(turn, Failure::new(Reason::NeedsRestart, cause))
    };
    if node.disable_power_off {
        return cannot("the node has disable_power_off set".to_owned());
    }
    if let Some(host) = compute_host(node) {
        return cannot(format!("a restart would stop the servers of compute host {host}"));
    }
    let stage = BootSettingStage::Restarted { before };
    let next = BootSettingRequest { stage, since: turn.now, ..request.clone() };
    let restarted = Node {
        boot_setting_request: Some(next),
        power_request: Some(power_request(turn, PowerChange::ForceRestart)),
        ..node.clone()
    };
    Ok(NodeUpdate::decided(restarted, []))
}

fn power_request(turn: &MachineTurn<'_>, change: PowerChange) -> PowerRequest {
    PowerRequest::new(change, deadline(turn.now, turn.rules.timeouts.power))
}

fn deadline(now: Timestamp, limit: Duration) -> Timestamp {
    now.checked_add(limit).unwrap_or(Timestamp::MAX)
}

/// Returns the reported value of the setting that `wanted` changes, in words.
fn reported(wanted: BootSetting, settings: BootSettings) -> String {
    match wanted {
        BootSetting::Mode(_) => {
            settings.mode.map_or("no boot mode".to_owned(), |mode| format!("the boot mode {mode}"))
        }
        BootSetting::SecureBoot(_) => match settings.secure_boot {
            Some(true) => "secure boot on".to_owned(),
            Some(false) => "secure boot off".to_owned(),
            None => "no secure boot".to_owned(),
        },
    }
}

fn give_up(turn: &MachineTurn<'_>, failure: Failure) -> Planned {
    let (cause, event) = (failure.cause.clone(), failure.to_string());
    let line = format!("the change of a boot setting of node {} failed", turn.node.id);
    Ok(turn.give_up_power(failure, event)?.warn_of(cause, line))
}
