//! Plans the next step of a requested change of a boot setting.

use std::time::Duration;

use hardware::{BootSetting, BootSettings, PowerChange, PowerState};
use jiff::Timestamp;

use super::action::Action;
use super::seen::{BootSettingsSeen, Observed, PowerSeen};
use super::turn::{MachineTurn, Planned};
use crate::{
    BootSettingRequest, BootSettingStage, Failure, HistoryEntry, Node, NodeUpdate, PowerRequest,
    Reason, compute_host, elapsed,
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
            let cause = "the BMC did not report its boot settings in time".to_owned();
            return give_up(turn, Failure::new(Reason::BmcUnreachable, cause));
        }
        (PowerSeen::NotAsked, _) | (PowerSeen::Is(_), BootSettingsSeen::NotSeen) => {
            return turn.look_again();
        }
    };
    if settings.has(request.wanted) {
        return done(turn, request, power, settings);
    }
    match request.stage {
        BootSettingStage::Asking => {
            Ok(decision::Decision::act(Action::ChangeBootSetting(request.wanted)))
        }
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

/// Records that the BMC accepted the change.
pub(super) fn boot_setting_accepted<A>(turn: &MachineTurn<'_>) -> Planned<A> {
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
