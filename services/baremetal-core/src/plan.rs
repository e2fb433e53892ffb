//! Plans the next step of a node's machine: the pure part of a conductor's turn.

mod action;
mod bios;
mod boot_setting;
mod children;
mod command;
mod firmware;
mod password;
mod power;
mod raid;
mod seen;
mod turn;

use std::time::Duration;

use decision::{Decision, Requeue};
use hardware::{PowerChange, PowerState};
use jiff::Timestamp;

use crate::{
    AgentCommand, BootAgain, Failure, IllegalEvent, Node, NodeUpdate, Reason, ServiceNetwork,
    StepRunner, Task, Work, elapsed,
};
use bios::{bios_accepted, bios_not_applied};
use boot_setting::{boot_setting_accepted, confirm_boot, plan_boot_setting, set_boot};
use children::plan_child_step;
use command::{plan_command, plan_shutdown, plan_steps};
use firmware::{firmware_checked, plan_update, update_accepted, update_refused};
use password::{password_asked, password_refused, plan_rotation};
use power::{ask, false_power_off, plan_power, power_stuck, was_asked};
use raid::{plan_raid_change, raid_change_accepted, raid_change_refused, raid_checked};
use turn::{MachineTurn, Planned};

pub use action::{Action, ActionOutcome};
pub use seen::{
    AgentSeen, BootSettingsSeen, CommandSeen, FirmwareSeen, Observed, PasswordSeen, PowerSeen,
    RaidChangeSeen, RaidSeen, UpdateSeen,
};
pub use turn::{PlanRules, Timeouts};

/// Decides the next step for `node`, given the latest observation of its machine.
///
/// Pure: no clock, no I/O, no randomness. The same inputs always give the same decision.
///
/// # Errors
///
/// Fails if the table of provision states does not allow the change, which is a bug.
pub fn plan(
    node: &Node,
    seen: &Observed,
    rules: &PlanRules<'_>,
    now: Timestamp,
) -> Result<Decision<NodeUpdate, Action>, IllegalEvent> {
    let turn = MachineTurn { node, rules, now };
    let rotation = node.password_rotation.as_ref().filter(|rotation| rotation.is_in_progress());
    match (&node.work, &node.power_request, &node.boot_setting_request, rotation) {
        (Some(work), ..) => plan_work(&turn, work, seen),
        (None, Some(request), ..) => plan_power(&turn, request, seen),
        (None, None, Some(request), _) => plan_boot_setting(&turn, request, seen),
        (None, None, None, Some(rotation)) => plan_rotation(&turn, rotation, seen),
        (None, None, None, None) if !node.network_changes.are_done() => {
            Ok(Decision::act(Action::ChangeNetworks))
        }
        (None, None, None, None) => Ok(Decision::rest(Requeue::OnChange)),
    }
}

/// Decides what follows from the result of an action. Timeouts count from `watching_since` at the earliest.
///
/// # Errors
///
/// As [`plan`].
pub fn after_action(
    node: &Node,
    outcome: &ActionOutcome,
    watching_since: Timestamp,
    rules: &PlanRules<'_>,
    now: Timestamp,
) -> Result<Decision<NodeUpdate>, IllegalEvent> {
    let turn = MachineTurn { node, rules, now };
    match outcome {
        ActionOutcome::TaskDone(node) => turn.next_task_of(node),
        ActionOutcome::Inspected(inspected) => {
            let (node, changes) = &**inspected;
            let mut next = turn.next_task_of(node)?;
            if let Some(update) = &mut next.change {
                update.inspection = changes.clone().some();
            }
            Ok(next)
        }
        // Most machines have switched by now, so the next turn looks immediately.
        ActionOutcome::PowerRequested | ActionOutcome::NoAgent => Ok(Decision::rest(Requeue::Now)),
        ActionOutcome::NetworksChanged(node) => Ok(NodeUpdate::decided((**node).clone(), [])),
        ActionOutcome::BiosAccepted => bios_accepted(&turn),
        ActionOutcome::BiosNotApplied(what) => bios_not_applied(&turn, what, watching_since),
        ActionOutcome::FirmwareChecked(updates) => firmware_checked(&turn, *updates),
        ActionOutcome::UpdateAccepted(task) => update_accepted(&turn, task.as_deref()),
        ActionOutcome::UpdateRefused(problem) => update_refused(&turn, problem, watching_since),
        ActionOutcome::RaidChecked(changes) => raid_checked(&turn, changes),
        ActionOutcome::RaidChangeAccepted(task) => raid_change_accepted(&turn, task.as_deref()),
        ActionOutcome::RaidChangeRefused(problem) => {
            raid_change_refused(&turn, problem, watching_since)
        }
        ActionOutcome::BootSettingAccepted => boot_setting_accepted(&turn),
        ActionOutcome::PasswordMade(node) => Ok(NodeUpdate::decided((**node).clone(), [])),
        ActionOutcome::PasswordAsked => password_asked(&turn),
        ActionOutcome::PasswordRefused(problem) => {
            password_refused(&turn, problem, turn.is_final(problem, watching_since))
        }
        ActionOutcome::CommandGiven => turn.look_again(),
        ActionOutcome::Failed(problem) => turn.after_problem(problem, watching_since),
    }
}

/// Decides the next step of the work in progress.
fn plan_work(turn: &MachineTurn<'_>, work: &Work, seen: &Observed) -> Planned {
    let Some(task) = work.task() else { return turn.finish() };
    let (timeouts, now) = (turn.rules.timeouts, turn.now);
    let began = work.task_started_at.max(seen.watching_since);
    let late = |limit: Duration| elapsed(began, now) > limit;

    match (task, seen) {
        (Task::TryBmc, Observed { power: PowerSeen::Is(_), .. }) => turn.next_task(seen),
        (Task::TryBmc, Observed { power: PowerSeen::Failed(problem), .. }) => {
            turn.retry_or_give_up(problem, late(timeouts.bmc))
        }
        (Task::TryBmc, Observed { power: PowerSeen::NotAsked, .. }) => turn.look_again(),

        (Task::AskBmcForInventory, _) => Ok(Decision::act(Action::ReadInventory)),
        (Task::ReadBios, _) => Ok(Decision::act(Action::ReadBios)),
        (Task::BindVifs, _) => Ok(Decision::act(Action::BindVifs)),
        (Task::DetachVifs, _) => Ok(Decision::act(Action::DetachVifs)),
        (Task::ReleaseVifs, _) => Ok(Decision::act(Action::ReleaseVifs)),
        (Task::Connect(network), _) => connect(turn, *network),
        (Task::Disconnect, _) => Ok(Decision::act(Action::Disconnect)),
        (Task::ConfirmBios { .. }, _) => Ok(Decision::act(Action::ConfirmBios)),
        (Task::UpdateFirmware(update), _) => plan_update(turn, work, update, seen),
        (Task::ReadFirmware { .. }, _) => Ok(Decision::act(Action::ReadFirmware)),
        (Task::SetBoot(wanted), _) => set_boot(turn, *wanted, work, seen),
        (Task::ConfirmBoot(wanted), _) => confirm_boot(turn, *wanted, work, seen),
        (Task::ChangeRaid(change), _) => plan_raid_change(turn, work, change, seen),
        (Task::ReadRaid { .. }, _) => Ok(Decision::act(Action::ReadRaid)),
        (Task::BootRamdisk, _) => Ok(Decision::act(Action::BootRamdisk)),
        (Task::BootDisk, _) => Ok(Decision::act(Action::BootDisk)),
        (Task::BootOwnImage, _) => Ok(Decision::act(Action::BootOwnImage)),
        (Task::Power(wanted), _) => switch(turn, *wanted, work, seen),

        (Task::AwaitInventory, Observed { inventory: true, .. }) => {
            Ok(Decision::act(Action::TakeInventory))
        }
        (Task::AwaitInventory, _) if late(timeouts.boot) => {
            boot_missed(turn, work, seen, "sent no inventory")
        }
        (Task::AwaitInventory, _) => turn.await_report(began),

        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) if late(timeouts.boot) => {
            boot_missed(turn, work, seen, "never called back")
        }
        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) => turn.await_report(began),
        (Task::AwaitAgent, _) => turn.next_task(seen),

        (Task::Agent(AgentCommand::PowerOff), _) => plan_shutdown(turn, work, seen),
        (Task::Agent(command), _) => {
            plan_command(turn, task, Action::Command(*command), work, seen)
        }
        (Task::Step(step), _) => match step.runner {
            StepRunner::Conductor => Ok(Decision::act(Action::ConductorStep)),
            StepRunner::Agent => plan_command(turn, task, Action::Step, work, seen),
        },
        (Task::StepOnChildren(run), _) => plan_child_step(turn, run, seen),
        (Task::Wait { seconds }, _) => plan_wait(turn, work, *seconds, seen),
        (Task::Hold, _) => Ok(Decision::rest(Requeue::OnChange)),
        (Task::PlanSteps, _) => plan_steps(turn, work, &[]),
    }
}

/// Waits until this many seconds have passed.
fn plan_wait(turn: &MachineTurn<'_>, work: &Work, seconds: u32, seen: &Observed) -> Planned {
    match elapsed(work.task_started_at, turn.now).as_secs() {
        passed if passed >= seconds.into() => turn.next_task(seen),
        _ => turn.look_again(),
    }
}

/// Connects the machine to a network of the service. The network is recorded first, so that no port in Neutron is forgotten.
fn connect(turn: &MachineTurn<'_>, network: ServiceNetwork) -> Planned {
    if turn.node.network_changes.connected == Some(network) {
        return Ok(Decision::act(Action::Connect(network)));
    }
    let mut node = turn.node.clone();
    node.network_changes.connected = Some(network);
    turn.intend(node, Action::Connect(network))
}

/// Switches the machine on or off, and waits until the BMC reports that state. A machine that runs the ramdisk already stays on.
///
/// A machine whose agent answers is on, whatever its BMC says. If the work went on, the next request to switch the machine on would change
/// nothing: the ramdisk would run on, and the node would become `active` without its system.
fn switch(turn: &MachineTurn<'_>, wanted: PowerState, work: &Work, seen: &Observed) -> Planned {
    if let Some(booted) = seen.idle_ramdisk
        && turn.node.may_use_idle_ramdisk(turn.rules.fast_track)
    {
        return turn.use_idle_ramdisk(booted, seen);
    }
    let (timeouts, now) = (turn.rules.timeouts, turn.now);
    let is_late = elapsed(work.task_started_at.max(seen.watching_since), now) > timeouts.power;
    let answers = wanted == PowerState::Off && seen.agent == AgentSeen::Present;
    match &seen.power {
        PowerSeen::Is(is) if *is == wanted && !answers => turn.next_task(seen),
        PowerSeen::Is(PowerState::Off) if is_late && answers => {
            turn.give_up(false_power_off(timeouts.power))
        }
        PowerSeen::Is(_) if is_late => turn.give_up(power_stuck(wanted, timeouts.power)),
        PowerSeen::Is(_) if was_asked(work.asked_at, timeouts, now) => turn.look_again(),
        PowerSeen::Is(_) => ask(
            turn,
            match wanted {
                PowerState::On => PowerChange::On,
                PowerState::Off => PowerChange::ForceOff,
            },
        ),
        PowerSeen::Failed(problem) => turn.retry_or_give_up(problem, is_late),
        PowerSeen::NotAsked => turn.look_again(),
    }
}

/// The next step of a boot that is late: the boot is repeated if the service or its database was away during it and no agent has reported.
fn boot_missed(turn: &MachineTurn<'_>, work: &Work, seen: &Observed, what: &str) -> Planned {
    if seen.agent == AgentSeen::Absent && work.missed_boot(seen.watching_since) {
        return turn.boot_again(BootAgain::Missed);
    }
    let cause = format!(
        "the machine was switched on {} s ago and {what} ({})",
        turn.rules.timeouts.boot.as_secs(),
        seen.boot_trail
    );
    turn.give_up(Failure::new(Reason::NoCallback, cause))
}

#[cfg(test)]
mod tests;
