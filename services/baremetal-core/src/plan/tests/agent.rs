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
fn a_rescue_whose_answer_was_lost_boots_the_ramdisk_again() {
    let restarted = T0 + Duration::from_secs(10);
    let finalizing = |intent| {
        let mut node = at(Task::Agent(AgentCommand::FinalizeRescue), intent);
        node.provision_state = State::RescueWait;
        node
    };
    let silent = |watching_since| {
        let agent = AgentSeen::Silent { since: T0, problem: problem(true) };
        Observed { agent, watching_since, ..seen() }
    };
    let gives_up = || {
        expect![
            "GiveUp(AgentLost: the agent fell silent 121 s ago while setting the rescue password: cannot reach the BMC)"
        ]
    };
    check(&finalizing(Some(0)), silent(restarted), 130, expect!["Wait(1 s)"]);
    check(&finalizing(Some(0)), silent(restarted), 131, expect!["BootAgain"]);
    check(&finalizing(None), silent(restarted), 131, gives_up());
    check(&finalizing(Some(0)), silent(T0), 121, gives_up());
    let mut repeated = finalizing(Some(0));
    repeated.work.as_mut().unwrap().repeated_boots = crate::boot_again::MOST_REPEATED_BOOTS;
    check(&repeated, silent(restarted), 131, gives_up());
    let mut another = at(Task::Agent(AgentCommand::Sync), Some(0));
    another.provision_state = State::CleanWait;
    let lost = expect![
        "GiveUp(AgentLost: the agent fell silent 121 s ago while flushing caches to disk: cannot reach the BMC)"
    ];
    check(&another, silent(restarted), 131, lost);
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
