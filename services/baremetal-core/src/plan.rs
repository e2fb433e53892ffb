//! Plans the next step of a node: the pure part of a conductor's turn.

use std::time::Duration;

use agent_protocol::Progress;
use hardware::{PowerChange, PowerState};
use jiff::Timestamp;

use crate::{AgentCommand, Failure, Node, Problem, Reason, Task, Work, elapsed};

/// The conductor's latest observation of a machine. The conductor observes only what the current task needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub power: PowerSeen,
    pub agent: AgentSeen,
    /// Whether the inventory of the current work has arrived.
    pub inventory: bool,
    /// When the conductor began to watch. Timeouts count from here at the earliest, because the conductor may have missed events before.
    pub watching_since: Timestamp,
}

/// An observation of the machine's power.
#[derive(Clone, Debug, PartialEq)]
pub enum PowerSeen {
    /// The conductor did not ask, because the current task does not need the power state.
    NotAsked,
    /// The BMC reports this state.
    Is(PowerState),
    /// The BMC did not report a state.
    Failed(Problem),
}

/// An observation of the agent in the ramdisk.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentSeen {
    /// The agent has not reported since the machine was booted for the current work.
    Absent,
    /// The agent has reported. The conductor did not ask for its commands, because the current task does not need them.
    Present,
    /// The commands that the agent has received so far.
    Commands(Vec<CommandSeen>),
    /// The agent has reported before and does not answer now.
    Silent {
        /// The last time that the agent reported or answered.
        since: Timestamp,
        /// The network's error for the last call.
        problem: Problem,
    },
    /// The agent still reports, but refuses or does not answer calls.
    Refuses {
        /// The number of failed calls in a row.
        calls: u32,
        /// When the first of these calls failed.
        since: Timestamp,
        /// The error of the last call.
        problem: Problem,
    },
}

/// After this many refusals in a row that a retry cannot cure, the work fails. An example is an agent that was booted with another token.
const MAX_REFUSALS: u32 = 5;

/// A command and its result, as the agent reports them.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandSeen {
    Running(Option<Progress>),
    Succeeded,
    /// The command failed, with the agent's message.
    Failed(String),
}

/// The next step for a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing to do until a caller makes a request.
    Rest,
    /// Nothing to do yet.
    Wait {
        /// When to look again, at the latest.
        until: Timestamp,
    },
    /// Perform this action, then look again.
    Act(Action),
    /// The current task is done: begin the next one.
    NextTask,
    /// All tasks are done.
    Finish,
    /// The service missed a part of the awaited boot: boot the ramdisk again.
    BootAgain,
    /// The work fails.
    GiveUp(Failure),
    /// One step of the requested change of power has happened.
    PowerStepDone,
    /// The requested change of power fails.
    PowerGivenUp(Failure),
}

/// An action of the conductor outside of its database. Every action may be repeated without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the BMC for a change of power.
    RequestPower(PowerChange),
    /// Read the BMC's inventory and store it.
    ReadInventory,
    /// Make the ramdisk the next boot.
    BootRamdisk,
    /// Make the disk the boot device of all boots.
    BootDisk,
    /// Give the agent a command, after its intent was recorded.
    Command(AgentCommand),
}

impl Action {
    /// Returns the action's name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Action::RequestPower(PowerChange::On) => "power_on",
            Action::RequestPower(PowerChange::ForceOff) => "power_off",
            Action::RequestPower(PowerChange::SoftOff) => "soft_power_off",
            Action::RequestPower(PowerChange::ForceRestart) => "restart",
            Action::RequestPower(PowerChange::SoftRestart) => "soft_restart",
            Action::ReadInventory => "read_inventory",
            Action::BootRamdisk => "boot_ramdisk",
            Action::BootDisk => "boot_disk",
            Action::Command(AgentCommand::EraseMetadata) => "erase_metadata",
            Action::Command(AgentCommand::EraseDisks) => "erase_disks",
            Action::Command(AgentCommand::WriteImage) => "write_image",
            Action::Command(AgentCommand::SetNextBoot) => "set_next_boot",
            Action::Command(AgentCommand::Sync) => "sync",
        }
    }
}

/// The time limits of tasks, and the interval of polling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the BMC to answer and to carry out a request.
    pub bmc: Duration,
    /// For the machine to switch on or off.
    pub power: Duration,
    /// From power-on to the agent's first report.
    pub boot: Duration,
    /// For one command of the agent.
    pub command: Duration,
    /// For an agent that does not answer.
    pub silence: Duration,
    /// How long the conductor waits after the BMC accepted a change of power, before it asks again.
    pub ask_again: Duration,
    /// The interval of looking at a machine that the conductor waits for.
    pub poll_every: Duration,
}

/// Returns the next step for `node`, given the latest observation of its machine.
///
/// Pure: no clock, no I/O, no randomness. The same inputs always give the same step.
pub fn plan(node: &Node, seen: &Observed, timeouts: &Timeouts, now: Timestamp) -> Step {
    match (&node.work, &node.power_request) {
        (Some(work), _) => plan_work(work, seen, timeouts, now),
        (None, Some(request)) => plan_power(request, seen, timeouts, now),
        (None, None) => Step::Rest,
    }
}

/// Returns the next step of the work in progress.
fn plan_work(work: &Work, seen: &Observed, timeouts: &Timeouts, now: Timestamp) -> Step {
    let Some(task) = work.task() else { return Step::Finish };
    let began = work.task_started_at.max(seen.watching_since);
    let late = |limit: Duration| elapsed(began, now) > limit;
    let look_again = Step::Wait { until: now + timeouts.poll_every };
    let asked = was_asked(work.asked_at, timeouts, now);

    match (task, seen) {
        (Task::TryBmc, Observed { power: PowerSeen::Is(_), .. }) => Step::NextTask,
        (Task::TryBmc, Observed { power: PowerSeen::Failed(problem), .. }) => {
            retry_or_give_up(problem, late(timeouts.bmc), look_again)
        }
        (Task::TryBmc, Observed { power: PowerSeen::NotAsked, .. }) => look_again,

        (Task::AskBmcForInventory, _) => Step::Act(Action::ReadInventory),
        (Task::BootRamdisk, _) => Step::Act(Action::BootRamdisk),
        (Task::BootDisk, _) => Step::Act(Action::BootDisk),

        (Task::Power(wanted), Observed { power: PowerSeen::Is(is), .. }) if wanted == is => {
            Step::NextTask
        }
        (Task::Power(wanted), Observed { power: PowerSeen::Is(_), .. }) if late(timeouts.power) => {
            Step::GiveUp(power_stuck(*wanted, timeouts.power))
        }
        (Task::Power(_), Observed { power: PowerSeen::Is(_), .. }) if asked => look_again,
        (Task::Power(PowerState::On), Observed { power: PowerSeen::Is(_), .. }) => {
            Step::Act(Action::RequestPower(PowerChange::On))
        }
        (Task::Power(PowerState::Off), Observed { power: PowerSeen::Is(_), .. }) => {
            Step::Act(Action::RequestPower(PowerChange::ForceOff))
        }
        (Task::Power(_), Observed { power: PowerSeen::Failed(problem), .. }) => {
            retry_or_give_up(problem, late(timeouts.power), look_again)
        }
        (Task::Power(_), Observed { power: PowerSeen::NotAsked, .. }) => look_again,

        (Task::AwaitInventory, Observed { inventory: true, .. }) => Step::NextTask,
        (Task::AwaitInventory, _) if late(timeouts.boot) => {
            boot_missed(work, seen, no_callback(timeouts.boot, "sent no inventory"))
        }
        (Task::AwaitInventory, _) => look_again,

        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) if late(timeouts.boot) => {
            boot_missed(work, seen, no_callback(timeouts.boot, "never called back"))
        }
        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) => look_again,
        (Task::AwaitAgent, _) => Step::NextTask,

        (Task::Agent(command), _) => plan_command(*command, work, seen, timeouts, now),
    }
}

/// The next step of a boot that is late: the boot is repeated if the service or its database was away during it and no agent has reported.
fn boot_missed(work: &Work, seen: &Observed, failure: Failure) -> Step {
    if seen.agent == AgentSeen::Absent && work.missed_boot(seen.watching_since) {
        Step::BootAgain
    } else {
        Step::GiveUp(failure)
    }
}

/// Returns the next step of a task that the agent carries out.
fn plan_command(
    command: AgentCommand,
    work: &Work,
    seen: &Observed,
    timeouts: &Timeouts,
    now: Timestamp,
) -> Step {
    let look_again = Step::Wait { until: now + timeouts.poll_every };
    let doing = Task::Agent(command).describe();
    let lost = |cause: String| Step::GiveUp(Failure::new(Reason::AgentLost, cause));
    let began = work.task_started_at.max(seen.watching_since);
    if elapsed(began, now) > timeouts.command {
        let cause = format!("{doing} took longer than {} s", timeouts.command.as_secs());
        return Step::GiveUp(Failure::new(Reason::StepTimedOut, cause));
    }

    match (&seen.agent, work.intent) {
        (AgentSeen::Silent { since, problem }, _) => {
            let silent_for = elapsed((*since).max(seen.watching_since), now);
            if silent_for <= timeouts.silence {
                return look_again;
            }
            lost(format!(
                "the agent fell silent {} s ago while {doing}: {}",
                silent_for.as_secs(),
                problem.cause
            ))
        }
        (AgentSeen::Refuses { calls, since, problem }, _) => {
            let since = (*since).max(seen.watching_since);
            let refused_for = elapsed(since, now);
            let is_enough = match problem.transient {
                true => refused_for > timeouts.silence,
                false => *calls >= MAX_REFUSALS,
            };
            if !is_enough {
                return look_again;
            }
            let cause = format!(
                "the agent reports, but {calls} calls to it failed in {} s while {doing}: {}",
                refused_for.as_secs(),
                problem.cause
            );
            Step::GiveUp(Failure::new(Reason::AgentRefuses, cause))
        }
        (AgentSeen::Absent, _) => lost(format!("the machine restarted while {doing}")),
        (AgentSeen::Present, _) => look_again,
        (AgentSeen::Commands(_), None) => Step::Act(Action::Command(command)),
        (AgentSeen::Commands(given), Some(before)) if given.len() < before => {
            lost(format!("the agent restarted while {doing}"))
        }
        (AgentSeen::Commands(given), Some(before)) => match given.get(before) {
            // The intent was recorded, but the agent has no such command: the conductor was interrupted before it sent the command.
            None => Step::Act(Action::Command(command)),
            Some(CommandSeen::Running(_)) => look_again,
            Some(CommandSeen::Succeeded) => Step::NextTask,
            Some(CommandSeen::Failed(why)) => {
                Step::GiveUp(Failure::new(Reason::StepFailed, format!("{doing} failed: {why}")))
            }
        },
    }
}

/// Returns the next step of a requested change of power.
fn plan_power(
    request: &crate::PowerRequest,
    seen: &Observed,
    timeouts: &Timeouts,
    now: Timestamp,
) -> Step {
    let Some(change) = request.remaining.last() else { return Step::PowerStepDone };
    // If the conductor was down, the machine gets a full timeout from the moment the conductor watches again.
    let late = now > request.deadline.max(seen.watching_since + timeouts.power);
    match &seen.power {
        PowerSeen::Is(is) if *is == change.leads_to() => Step::PowerStepDone,
        PowerSeen::Is(_) if late => {
            Step::PowerGivenUp(power_stuck(change.leads_to(), timeouts.power))
        }
        PowerSeen::Is(_) if was_asked(request.asked_at, timeouts, now) => {
            Step::Wait { until: now + timeouts.poll_every }
        }
        PowerSeen::Is(_) => Step::Act(Action::RequestPower(*change)),
        PowerSeen::Failed(problem) if problem.transient && !late => {
            Step::Wait { until: now + timeouts.poll_every }
        }
        PowerSeen::Failed(problem) => Step::PowerGivenUp(problem.clone().into()),
        PowerSeen::NotAsked => Step::Wait { until: now + timeouts.poll_every },
    }
}

/// Returns whether the BMC was asked so recently that it may still be at work. A request with a time in the future says that the clock was
/// set back: the BMC is asked again, because waiting would last until the clock reaches that time.
fn was_asked(asked_at: Option<Timestamp>, timeouts: &Timeouts, now: Timestamp) -> bool {
    asked_at.is_some_and(|at| now.duration_since(at).unsigned_abs() <= timeouts.ask_again)
}

/// Retries a transient problem until the time limit has passed; every other problem fails the work.
fn retry_or_give_up(problem: &Problem, late: bool, look_again: Step) -> Step {
    if problem.transient && !late { look_again } else { Step::GiveUp(problem.clone().into()) }
}

fn power_stuck(wanted: PowerState, limit: Duration) -> Failure {
    let cause = format!(
        "the BMC accepted \"{wanted}\", but the machine did not reach that state within {} s",
        limit.as_secs()
    );
    Failure::new(Reason::PowerStuck, cause)
}

fn no_callback(limit: Duration, what: &str) -> Failure {
    Failure::new(
        Reason::NoCallback,
        format!("the machine was switched on {} s ago and {what}", limit.as_secs()),
    )
}

#[cfg(test)]
mod tests;
