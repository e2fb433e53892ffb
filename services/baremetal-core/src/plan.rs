//! The next step for a node.

use std::time::Duration;

use agent_protocol::Progress;
use hardware::{PowerChange, PowerState};
use jiff::Timestamp;

use crate::{AgentCommand, Failure, Node, Problem, Reason, Task, Work};

/// What was last seen of a node's machine. Only what the current task needs is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its power.
    pub power: PowerSeen,
    /// Its agent.
    pub agent: AgentSeen,
    /// Whether the inventory of the current work has arrived.
    pub inventory: bool,
    /// Since when somebody has been looking: what happened while nobody did is not held against the machine.
    pub watching_since: Timestamp,
}

/// A look at the machine's power.
#[derive(Clone, Debug, PartialEq)]
pub enum PowerSeen {
    /// Nobody looked: the current task does not need it.
    NotAsked,
    /// The BMC says so.
    Is(PowerState),
    /// The BMC did not say.
    Failed(Problem),
}

/// A look at the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentSeen {
    /// It has not reported since the machine was booted for the current work.
    Absent,
    /// It has reported; nobody asked it for its commands, as the current task does not need them.
    Present,
    /// It told the commands it was given.
    Commands(Vec<CommandSeen>),
    /// It has reported before and does not answer now.
    Silent {
        /// When it last spoke.
        since: Timestamp,
        /// What the network said.
        problem: Problem,
    },
    /// It reports, and does not answer when it is called, or answers no.
    Refuses {
        /// How many calls in a row.
        calls: u32,
        /// When the first of them was.
        since: Timestamp,
        /// What came of the last.
        problem: Problem,
    },
}

/// So many calls in a row an agent may refuse that says no for good, such as one that knows another token.
const MOST_REFUSALS: u32 = 5;

/// One command, as the agent tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandSeen {
    /// Not finished.
    Running(Option<Progress>),
    /// Finished well.
    Succeeded,
    /// Finished badly: what the agent says of it.
    Failed(String),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing, until someone asks for something.
    Rest,
    /// Nothing, until `until` at the latest.
    Wait {
        /// When to look again.
        until: Timestamp,
    },
    /// Do this, then look again.
    Act(Action),
    /// The current task is done: begin the next.
    NextTask,
    /// All tasks are done.
    Finish,
    /// The work cannot go on.
    GiveUp(Failure),
    /// The change of power that was asked for has got one step further.
    PowerStepDone,
    /// The change of power that was asked for cannot happen.
    PowerGivenUp(Failure),
}

/// Something the conductor does to the world. Idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the BMC for a change of power.
    RequestPower(PowerChange),
    /// Ask the BMC for its inventory, and keep it.
    ReadInventory,
    /// Make the next boot be the ramdisk.
    BootRamdisk,
    /// Make all boots be the disk.
    BootDisk,
    /// Give the agent a command, its intent recorded first.
    Command(AgentCommand),
}

impl Action {
    /// The action's name in logs.
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

/// How long each task may take, and how often to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the BMC to answer and to do as asked.
    pub bmc: Duration,
    /// For a machine to switch on or off.
    pub power: Duration,
    /// From power-on to the agent's report.
    pub boot: Duration,
    /// For one command of the agent.
    pub command: Duration,
    /// For an agent that does not answer.
    pub silence: Duration,
    /// How long a BMC that accepted a change of power is given before it is asked again.
    pub ask_again: Duration,
    /// How often to look at what is awaited.
    pub poll_every: Duration,
}

/// The next step for `node`, given what was last seen of it.
///
/// Pure: no clock, no I/O, no randomness. The same inputs always give the same step.
pub fn plan(node: &Node, seen: &Observed, timeouts: &Timeouts, now: Timestamp) -> Step {
    match (&node.work, &node.power_request) {
        (Some(work), _) => plan_work(work, seen, timeouts, now),
        (None, Some(request)) => plan_power(request, seen, timeouts, now),
        (None, None) => Step::Rest,
    }
}

/// The next step of the work under way.
fn plan_work(work: &Work, seen: &Observed, timeouts: &Timeouts, now: Timestamp) -> Step {
    let Some(task) = work.task() else { return Step::Finish };
    let began = work.task_started_at.max(seen.watching_since);
    let late = |limit: Duration| now.duration_since(began).unsigned_abs() > limit;
    let look_again = Step::Wait { until: now + timeouts.poll_every };
    let asked = was_asked(work.asked_at, timeouts, now);

    match (task, seen) {
        (Task::TryBmc, Observed { power: PowerSeen::Is(_), .. }) => Step::NextTask,
        (Task::TryBmc, Observed { power: PowerSeen::Failed(problem), .. }) => {
            bear(problem, late(timeouts.bmc), look_again)
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
            bear(problem, late(timeouts.power), look_again)
        }
        (Task::Power(_), Observed { power: PowerSeen::NotAsked, .. }) => look_again,

        (Task::AwaitInventory, Observed { inventory: true, .. }) => Step::NextTask,
        (Task::AwaitInventory, _) if late(timeouts.boot) => {
            Step::GiveUp(no_callback(timeouts.boot, "sent no inventory"))
        }
        (Task::AwaitInventory, _) => look_again,

        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) if late(timeouts.boot) => {
            Step::GiveUp(no_callback(timeouts.boot, "never called back"))
        }
        (Task::AwaitAgent, Observed { agent: AgentSeen::Absent, .. }) => look_again,
        (Task::AwaitAgent, _) => Step::NextTask,

        (Task::Agent(command), _) => plan_command(*command, work, seen, timeouts, now),
    }
}

/// The next step of a task that the agent carries out.
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
    if now.duration_since(began).unsigned_abs() > timeouts.command {
        let cause = format!("{doing} was not done within {} s", timeouts.command.as_secs());
        return Step::GiveUp(Failure::new(Reason::StepTimedOut, cause));
    }

    match (&seen.agent, work.intent) {
        (AgentSeen::Silent { since, problem }, _) => {
            let silent_for = now.duration_since((*since).max(seen.watching_since)).unsigned_abs();
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
            let refused_for = now.duration_since(since).unsigned_abs();
            let is_enough = match problem.transient {
                true => refused_for > timeouts.silence,
                false => *calls >= MOST_REFUSALS,
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
            // The intent was recorded and the command never arrived: we were interrupted between the two.
            None => Step::Act(Action::Command(command)),
            Some(CommandSeen::Running(_)) => look_again,
            Some(CommandSeen::Succeeded) => Step::NextTask,
            Some(CommandSeen::Failed(why)) => {
                Step::GiveUp(Failure::new(Reason::StepFailed, format!("{doing} failed: {why}")))
            }
        },
    }
}

/// The next step of a change of power that was asked for.
fn plan_power(
    request: &crate::PowerRequest,
    seen: &Observed,
    timeouts: &Timeouts,
    now: Timestamp,
) -> Step {
    let Some(change) = request.remaining.last() else { return Step::PowerStepDone };
    // What nobody watched is not held against the machine: it gets at least as long as any other.
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

/// Whether the BMC was asked lately, and may still be at it.
fn was_asked(asked_at: Option<Timestamp>, timeouts: &Timeouts, now: Timestamp) -> bool {
    asked_at.is_some_and(|at| now.duration_since(at).unsigned_abs() <= timeouts.ask_again)
}

/// Bears with a problem that may pass, until it is late.
fn bear(problem: &Problem, late: bool, look_again: Step) -> Step {
    if problem.transient && !late { look_again } else { Step::GiveUp(problem.clone().into()) }
}

fn power_stuck(wanted: PowerState, limit: Duration) -> Failure {
    let cause = format!(
        "the BMC accepted \"{wanted}\", but the machine was not so within {} s",
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
