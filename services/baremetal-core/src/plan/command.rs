//! Plans the next step of a task that the agent carries out.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::action::Action;
use super::seen::{AgentSeen, CommandSeen, Observed};
use super::turn::{MachineTurn, Planned};
use crate::raid_step::{after_raid_step, before_raid_step};
use crate::{
    AgentCommand, BootAgain, Failure, HistoryEntry, ListedSteps, NodeUpdate, Obstacle, OfferedStep,
    Problem, Reason, Task, Work, elapsed,
};

/// After this many refusals in a row that a retry cannot cure, the work fails. An example is an agent that was booted with another token.
const MAX_REFUSALS: u32 = 5;

/// After this many refused calls to an agent in a row, the node's history gets an entry.
const RECORD_AFTER_CALLS: u32 = 3;

/// Decides the next step of `task`, which the agent carries out; `command` gives the task to the agent.
pub(super) fn plan_command(
    turn: &MachineTurn<'_>,
    task: &Task,
    command: Action,
    work: &Work,
    seen: &Observed,
) -> Planned {
    let (timeouts, now) = (turn.rules.timeouts, turn.now);
    let doing = task.describe();
    let lost = |cause: String| turn.give_up(Failure::new(Reason::AgentLost, cause));
    let began = work.task_started_at.max(seen.watching_since);
    if elapsed(began, now) > timeouts.command {
        let cause = format!("{doing} took longer than {} s", timeouts.command.as_secs());
        return turn.give_up(Failure::new(Reason::StepTimedOut, cause));
    }

    match (&seen.agent, work.intent) {
        (AgentSeen::Silent { since, problem }, _) => {
            plan_silence(turn, work, (*since).max(seen.watching_since), problem, seen)
        }
        (AgentSeen::Refuses { calls, since, problem, is_recorded }, _) => {
            let since = (*since).max(seen.watching_since);
            let refused_for = elapsed(since, now);
            let is_enough = match problem.transient {
                true => refused_for > timeouts.silence,
                false => *calls >= MAX_REFUSALS,
            };
            match is_enough {
                false if *calls >= RECORD_AFTER_CALLS && !is_recorded => {
                    record_refused_calls(turn, problem)
                }
                false => turn.look_again(),
                true => {
                    let cause = format!(
                        "the agent reports, but {calls} calls to it failed in {} s while {doing}: {}",
                        refused_for.as_secs(),
                        problem.cause
                    );
                    turn.give_up(Failure::new(Reason::AgentRefuses, cause))
                }
            }
        }
        (AgentSeen::Absent, _) => lost(format!("the machine restarted while {doing}")),
        (AgentSeen::Present, _) => turn.look_again(),
        (AgentSeen::Commands(given), None) => give(turn, command, given.len()),
        (AgentSeen::Commands(given), Some(before)) if given.len() < before => {
            lost(format!("the agent restarted while {doing}"))
        }
        (AgentSeen::Commands(given), Some(before)) => match given.get(before) {
            // The intent was recorded, but the agent has no such command: the conductor was interrupted before it sent the command.
            None => give(turn, command, given.len()),
            Some(CommandSeen::Running(_)) => turn.look_again(),
            Some(CommandSeen::Succeeded) => after_success(turn, task, seen, None),
            Some(CommandSeen::BuiltRaid(built)) => after_success(turn, task, seen, Some(built)),
            Some(CommandSeen::Listed(listed)) => plan_listed_steps(turn, work, listed),
            Some(CommandSeen::Failed(why)) => {
                let cause = format!("{doing} failed: {why}");
                turn.give_up(Failure::new(Reason::StepFailed, cause))
            }
        },
    }
}

/// Decides the next step while the agent has been silent since `since`.
fn plan_silence(
    turn: &MachineTurn<'_>,
    work: &Work,
    since: Timestamp,
    problem: &Problem,
    seen: &Observed,
) -> Planned {
    let silent_for = elapsed(since, turn.now);
    if silent_for <= turn.rules.timeouts.silence {
        return turn.look_again();
    }
    if work.lost_rescue(seen.watching_since) {
        return turn.boot_again(BootAgain::RescueUnknown);
    }
    let doing = work.task().map_or("its work".into(), Task::describe);
    let cause = format!(
        "the agent fell silent {} s ago while {doing}: {}",
        silent_for.as_secs(),
        problem.cause
    );
    turn.give_up(Failure::new(Reason::AgentLost, cause))
}

/// Decides the next step while the agent shuts the machine down. An agent that is gone cannot say so, and the next task switches the machine
/// off through its BMC, so every answer leads on.
pub(super) fn plan_shutdown(turn: &MachineTurn<'_>, work: &Work, seen: &Observed) -> Planned {
    if let (AgentSeen::Commands(given), None) = (&seen.agent, work.intent) {
        return give(turn, Action::Command(AgentCommand::PowerOff), given.len());
    }
    let mut decision = turn.next_task(seen)?;
    // The BMC is asked only after a while, so that the machine can shut down.
    let was_asked = work.intent.is_some();
    if let Some(work) = decision.change.as_mut().and_then(|update| update.node.work.as_mut()) {
        work.asked_at = was_asked.then_some(turn.now);
    }
    Ok(decision)
}

/// Begins the next task after the agent carried out `task`. The result of a RAID step is recorded with it.
fn after_success(
    turn: &MachineTurn<'_>,
    task: &Task,
    seen: &Observed,
    built: Option<&Map<String, Value>>,
) -> Planned {
    let raid = task.step().and_then(|step| after_raid_step(turn.node, step, built, turn.now));
    match raid {
        Some(Ok(node)) => return turn.next_task_of(&node),
        Some(Err(cause)) => return turn.give_up(Failure::new(Reason::StepFailed, cause)),
        None => {}
    }
    if !matches!(task, Task::Agent(AgentCommand::ListSteps(_))) {
        return turn.next_task(seen);
    }
    // Without the list, cleaning would end and erase nothing.
    let cause = format!("{} failed: the agent sent no list", task.describe());
    turn.give_up(Failure::new(Reason::StepFailed, cause))
}

/// Plans the steps of the work, given those that the agent listed, and begins the next task.
pub(super) fn plan_steps(turn: &MachineTurn<'_>, work: &Work, listed: &[OfferedStep]) -> Planned {
    let offered = turn.node.offered_steps(work.steps.kind(), listed, turn.rules.priorities);
    match turn.node.with_steps(&offered) {
        Ok(planned) => turn.next_task_of(&planned),
        Err(refused) => turn.give_up(Failure::new(Reason::StepFailed, refused.to_string())),
    }
}

/// Like [`plan_steps`], and keeps the agent's list.
fn plan_listed_steps(turn: &MachineTurn<'_>, work: &Work, listed: &[OfferedStep]) -> Planned {
    let mut decision = plan_steps(turn, work, listed)?;
    if let Some(update) = &mut decision.change {
        let (kind, steps) = (work.steps.kind(), listed.to_vec());
        update.listed = Some(ListedSteps { kind, listed_at: turn.now, steps });
    }
    Ok(decision)
}

/// Gives the agent a command. The intent is recorded first: after an interruption, the agent's list of commands tells whether the command
/// arrived.
fn give(turn: &MachineTurn<'_>, command: Action, given: usize) -> Planned {
    let mut intended = turn.node.clone();
    if let Some(Task::Step(step)) = turn.node.work.as_ref().and_then(Work::task) {
        before_raid_step(&mut intended, step);
    }
    if let Some(work) = &mut intended.work {
        work.intent = Some(given);
    }
    turn.intend(intended, command)
}

/// Records in the node's history why its work does not continue although its agent reports. The entry is written once, until the agent
/// answers again.
fn record_refused_calls(turn: &MachineTurn<'_>, problem: &Problem) -> Planned {
    let node = turn.node;
    let reported = format!("the agent reports, but calls to it fail: {}", problem.cause);
    let line = format!("node {}: {reported}", node.label());
    let entry = HistoryEntry::changed(node, node, reported, turn.now);
    let obstacle = Some(Obstacle::AgentCalls);
    let mut decision = turn.look_again()?.warn(line);
    decision.change = Some(NodeUpdate { obstacle, ..NodeUpdate::new(node.clone(), [entry]) });
    Ok(decision)
}
