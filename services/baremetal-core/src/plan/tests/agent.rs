//! Commands of the agent, and agents that refuse, restart or fall silent.

use super::*;

#[test]
fn a_command_is_given_once_even_after_an_interruption() {
    let task = || Task::Agent(AgentCommand::WriteImage);
    let reported =
        |given: Vec<CommandSeen>| Observed { agent: AgentSeen::Commands(given), ..seen() };
    // No intent was recorded: the command was never sent.
    check(
        &at(task(), None),
        reported(vec![CommandSeen::Succeeded]),
        0,
        expect!["Act(Command(WriteImage))"],
    );
    // The intent was recorded, but the command did not arrive.
    check(
        &at(task(), Some(1)),
        reported(vec![CommandSeen::Succeeded]),
        0,
        expect!["Act(Command(WriteImage))"],
    );
    // The command did arrive.
    check(
        &at(task(), Some(1)),
        reported(vec![CommandSeen::Succeeded, CommandSeen::Running(None)]),
        0,
        expect!["Wait(1 s)"],
    );
    check(
        &at(task(), Some(1)),
        reported(vec![CommandSeen::Succeeded, CommandSeen::Succeeded]),
        0,
        expect!["NextTask"],
    );
    check(
        &at(task(), Some(0)),
        reported(vec![CommandSeen::Failed("the checksum is wrong".to_owned())]),
        0,
        expect!["GiveUp(StepFailed: writing the image failed: the checksum is wrong)"],
    );
}

#[test]
fn an_agent_that_restarted_or_fell_silent_ends_the_work() {
    let task = || Task::Agent(AgentCommand::WriteImage);
    let reported =
        |given: Vec<CommandSeen>| Observed { agent: AgentSeen::Commands(given), ..seen() };
    check(
        &at(task(), Some(2)),
        reported(vec![]),
        0,
        expect!["GiveUp(AgentLost: the agent restarted while writing the image)"],
    );
    check(
        &at(task(), Some(0)),
        seen(),
        0,
        expect!["GiveUp(AgentLost: the machine restarted while writing the image)"],
    );
    let silent =
        || Observed { agent: AgentSeen::Silent { since: T0, problem: problem(true) }, ..seen() };
    check(&at(task(), Some(0)), silent(), 119, expect!["Wait(1 s)"]);
    check(
        &at(task(), Some(0)),
        silent(),
        121,
        expect![
            "GiveUp(AgentLost: the agent fell silent 121 s ago while writing the image: cannot reach the BMC)"
        ],
    );
}

#[test]
fn an_agent_that_refuses_calls_fails_the_work_before_the_command_times_out() {
    let node = at(Task::Agent(AgentCommand::WriteImage), None);
    let refuses = |calls, transient| Observed { agent: refuses(calls, transient), ..seen() };
    check(&node, refuses(4, false), 9, expect!["Wait(1 s)"]);
    check(
        &node,
        refuses(5, false),
        10,
        expect![
            "GiveUp(AgentRefuses: the agent reports, but 5 calls to it failed in 10 s while writing the image: cannot reach the BMC)"
        ],
    );
    // A problem that may pass gets the same time limit as a silent agent.
    check(&node, refuses(60, true), 119, expect!["Wait(1 s)"]);
    check(
        &node,
        refuses(61, true),
        121,
        expect![
            "GiveUp(AgentRefuses: the agent reports, but 61 calls to it failed in 121 s while writing the image: cannot reach the BMC)"
        ],
    );
}

#[test]
fn refused_calls_to_an_agent_are_recorded_once() {
    let node = at(Task::Agent(AgentCommand::WriteImage), None);
    let refuses = |calls, is_recorded| {
        let problem = problem(true);
        let agent = AgentSeen::Refuses { calls, since: T0, problem, is_recorded };
        Observed { agent, ..seen() }
    };
    check(&node, refuses(2, false), 9, expect!["Wait(1 s)"]);
    check(&node, refuses(3, false), 9, expect!["Tell(AgentCalls)"]);
    check(&node, refuses(4, true), 9, expect!["Wait(1 s)"]);
    let reported = planned(&node, &refuses(3, false), T0);
    assert_eq!(reported.next_turn, Requeue::After(timeouts().poll_every));
}
