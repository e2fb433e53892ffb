//! The planned step in every situation.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::{
    AgentCommand, DeployStep, Driver, Fault, Interface, Maintenance, NodeUuid, OfferedStep,
    PowerRequest, Problem, RequestRefused, RequestedStep, RescueInterface, State, Step, StepKind,
    StepName, StepPriorities, StepRunner, Verb, VerbRequest, WantedSteps, WorkUuid, boot_again,
    fail_work, finish_work, power_step_done, request_verb, start_next_task,
};

mod agent;
mod bios;
mod boot_setting;
mod children;
mod fast_track;
mod firmware;
mod lives;
mod networks;
mod password;
mod power;
mod raid;

const T0: Timestamp = Timestamp::UNIX_EPOCH;

/// The administrator gives no priorities.
static PRIORITIES: StepPriorities =
    StepPriorities { clean: BTreeMap::new(), deploy: BTreeMap::new() };

fn timeouts() -> Timeouts {
    Timeouts {
        bmc: Duration::from_secs(60),
        power: Duration::from_secs(60),
        ask_again: Duration::from_secs(15),
        boot: Duration::from_secs(600),
        command: Duration::from_secs(3600),
        firmware: Duration::from_secs(7200),
        silence: Duration::from_secs(120),
        poll_every: Duration::from_secs(1),
    }
}

fn seen() -> Observed {
    Observed {
        power: PowerSeen::NotAsked,
        boot_settings: BootSettingsSeen::NotSeen,
        password: PasswordSeen::NotSeen,
        firmware: FirmwareSeen::NotSeen,
        raid: RaidSeen::NotSeen,
        agent: AgentSeen::Absent,
        idle_ramdisk: None,
        inventory: false,
        children: Vec::new(),
        boot_trail: "DHCP: no".to_owned(),
        watching_since: T0,
    }
}

/// A node whose current task is `task`, begun at `T0`.
fn at(task: Task, intent: Option<usize>) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    node.provision_state = if task.is_waiting() { State::DeployWait } else { State::Deploying };
    node.work = Some(Work { intent, ..Work::new(WorkUuid::nil(), vec![task], T0) });
    node
}

/// Rules without priorities and without fast track.
fn rules(timeouts: &Timeouts, new_work: WorkUuid) -> PlanRules<'_> {
    PlanRules { timeouts, new_work, priorities: &PRIORITIES, fast_track: false }
}

/// Decides with the default timeouts.
fn planned(node: &Node, seen: &Observed, now: Timestamp) -> Decision<NodeUpdate, Action> {
    let timeouts = timeouts();
    let rules = rules(&timeouts, WorkUuid::nil());
    plan(node, seen, &rules, now).unwrap()
}

/// Decides what follows from the result of an action.
fn concluded(node: &Node, outcome: &ActionOutcome, now: Timestamp) -> Decision<NodeUpdate> {
    let timeouts = timeouts();
    let rules = rules(&timeouts, WorkUuid::nil());
    after_action(node, outcome, T0, &rules, now).unwrap()
}

/// Writes in a few words what a decision means for `before`.
fn text<A: std::fmt::Debug>(before: &Node, decision: &Decision<NodeUpdate, A>) -> String {
    let boots = |node: &Node| node.work.as_ref().map_or(0, |work| work.repeated_boots);
    match (&decision.change, decision.actions.as_slice(), decision.next_turn) {
        (_, [action], _) => format!("Act({action:?})"),
        (None, _, Requeue::OnChange) => "Rest".to_owned(),
        (None, _, Requeue::Now) => "Now".to_owned(),
        (None, _, Requeue::After(pause)) => format!("Wait({} s)", pause.as_secs()),
        (Some(NodeUpdate { obstacle: Some(obstacle), .. }), ..) => format!("Tell({obstacle:?})"),
        (Some(NodeUpdate { node, .. }), ..) => match &node.failure {
            Some(failure) => format!("GiveUp({:?}: {})", failure.reason, failure.cause),
            None if boots(node) > boots(before) => "BootAgain".to_owned(),
            None if node.power_request != before.power_request => "PowerStepDone".to_owned(),
            None => "NextTask".to_owned(),
        },
    }
}

#[track_caller]
fn check(node: &Node, seen: Observed, after_secs: i64, want: Expect) {
    let now = T0 + jiff::SignedDuration::from_secs(after_secs);
    want.assert_eq(&text(node, &planned(node, &seen, now)));
}

/// An agent that reports and refuses calls, which the history tells about already.
fn refuses(calls: u32, transient: bool) -> AgentSeen {
    AgentSeen::Refuses { calls, since: T0, problem: problem(transient), is_recorded: true }
}

fn problem(transient: bool) -> Problem {
    Problem { reason: Reason::BmcUnreachable, cause: "cannot reach the BMC".to_owned(), transient }
}

#[test]
fn a_node_without_work_rests() {
    check(&Node::new(NodeUuid::nil(), Driver::Ipmi, T0), seen(), 0, expect!["Rest"]);
}

#[test]
fn a_transient_bmc_error_is_retried_until_the_timeout() {
    let node = at(Task::TryBmc, None);
    let silent = |transient| Observed { power: PowerSeen::Failed(problem(transient)), ..seen() };
    check(&node, silent(true), 59, expect!["Wait(1 s)"]);
    check(&node, silent(true), 61, expect!["GiveUp(BmcUnreachable: cannot reach the BMC)"]);
    check(&node, silent(false), 0, expect!["GiveUp(BmcUnreachable: cannot reach the BMC)"]);
}

#[test]
fn time_without_a_conductor_does_not_count_as_late() {
    let node = at(Task::AwaitAgent, None);
    check(
        &node,
        seen(),
        601,
        expect![
            "GiveUp(NoCallback: the machine was switched on 600 s ago and never called back (DHCP: no))"
        ],
    );
    check(
        &node,
        Observed { watching_since: T0 + Duration::from_secs(600), ..seen() },
        601,
        expect!["Wait(10 s)"],
    );
}

#[test]
fn a_timeout_expires_after_its_last_second() {
    let off = PowerSeen::Is(PowerState::Off);
    let writes = || at(Task::Agent(AgentCommand::WriteImage), Some(0));
    let agent = |agent| Observed { agent, ..seen() };
    let power = |power| Observed { power, ..seen() };
    let running = || vec![CommandSeen::Running(None)];
    for (node, seen, limit, reason) in [
        (at(Task::TryBmc, None), power(PowerSeen::Failed(problem(true))), 60, "BmcUnreachable"),
        (at(Task::Power(PowerState::On), None), power(off), 60, "PowerStuck"),
        (at(Task::AwaitAgent, None), seen(), 600, "NoCallback"),
        (writes(), agent(AgentSeen::Commands(running())), 3600, "StepTimedOut"),
        (
            writes(),
            agent(AgentSeen::Silent { since: T0, problem: problem(true) }),
            120,
            "AgentLost",
        ),
        (writes(), agent(refuses(9, true)), 120, "AgentRefuses"),
    ] {
        let failed = |after_secs| {
            let now = T0 + jiff::SignedDuration::from_secs(after_secs);
            text(&node, &planned(&node, &seen, now)).starts_with(&format!("GiveUp({reason}: "))
        };
        assert_eq!((failed(limit), failed(limit + 1)), (false, true), "{reason}");
    }
    let failed = ActionOutcome::Failed(problem(true));
    let node = at(Task::BootRamdisk, None);
    let pause = Requeue::After(timeouts().poll_every);
    assert_eq!(concluded(&node, &failed, T0 + timeouts().bmc).next_turn, pause);
}

#[test]
fn a_task_that_ends_records_the_power_state_that_was_seen() {
    let node = Node { power_state: Some(PowerState::On), ..at(Task::TryBmc, None) };
    for (seen, node, want) in [
        (PowerSeen::Is(PowerState::Off), node.clone(), PowerState::Off),
        (
            PowerSeen::NotAsked,
            Node { work: at(Task::AwaitAgent, None).work, ..node },
            PowerState::On,
        ),
    ] {
        let seen = Observed { power: seen, agent: AgentSeen::Present, ..self::seen() };
        let next = planned(&node, &seen, T0).change.unwrap().node;
        assert_eq!(next.power_state, Some(want));
    }
}

#[test]
fn a_clock_that_is_set_back_expires_no_timeout() {
    const AN_HOUR_BEFORE: i64 = -3601;
    let writes = || at(Task::Agent(AgentCommand::WriteImage), Some(0));
    let agent = |agent| Observed { agent, ..seen() };
    let failed = || PowerSeen::Failed(problem(true));
    for (node, seen) in [
        (at(Task::TryBmc, None), Observed { power: failed(), ..seen() }),
        (at(Task::Power(PowerState::Off), None), Observed { power: failed(), ..seen() }),
        (writes(), agent(AgentSeen::Commands(vec![CommandSeen::Running(None)]))),
        (writes(), agent(AgentSeen::Silent { since: T0, problem: problem(true) })),
        (writes(), agent(refuses(9, true))),
    ] {
        check(&node, seen, AN_HOUR_BEFORE, expect!["Wait(1 s)"]);
    }
    for task in [Task::AwaitInventory, Task::AwaitAgent] {
        check(&at(task, None), seen(), AN_HOUR_BEFORE, expect!["Wait(10 s)"]);
    }
}

#[test]
fn a_machine_that_boots_is_looked_at_less_often_until_it_is_late() {
    for task in [Task::AwaitInventory, Task::AwaitAgent] {
        let node = at(task, None);
        check(&node, seen(), 0, expect!["Wait(10 s)"]);
        check(&node, seen(), 590, expect!["Wait(10 s)"]);
        check(&node, seen(), 597, expect!["Wait(3 s)"]);
        check(&node, seen(), 600, expect!["Wait(1 s)"]);
    }
}

#[test]
fn a_step_that_waits_ends_after_its_seconds() {
    let node = at(Task::Wait { seconds: 7 }, None);
    check(&node, seen(), 6, expect!["Wait(1 s)"]);
    check(&node, seen(), 7, expect!["NextTask"]);
}

#[test]
fn a_bmc_is_asked_again_after_the_clock_was_set_back() {
    let mut asked = at(Task::Power(PowerState::Off), None);
    asked.work.as_mut().unwrap().asked_at = Some(T0);
    let on = Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    check(&asked, on, -3601, expect!["Act(RequestPower(ForceOff))"]);
}

#[test]
fn a_boot_is_repeated_only_if_the_service_restarted_during_it_and_no_agent_reported() {
    let (began, restarted) = (T0 + Duration::from_secs(10), T0 + Duration::from_secs(20));
    let gives_up = || {
        expect![
            "GiveUp(NoCallback: the machine was switched on 600 s ago and never called back (DHCP: no))"
        ]
    };
    let booting = |switched_on_at| {
        let mut node = at(Task::AwaitAgent, None);
        node.work.as_mut().unwrap().switched_on_at = switched_on_at;
        node
    };
    let since = |watching_since| Observed { watching_since, ..seen() };
    check(&booting(Some(began)), since(restarted), 620, expect!["Wait(1 s)"]);
    check(&booting(Some(began)), since(restarted), 621, expect!["BootAgain"]);
    check(&booting(Some(restarted)), since(restarted), 621, gives_up());
    check(&booting(Some(began)), since(T0), 621, gives_up());
    check(&booting(None), since(restarted), 621, gives_up());
    let present = Observed { agent: AgentSeen::Present, ..since(restarted) };
    check(&booting(Some(began)), present.clone(), 621, expect!["NextTask"]);

    let mut inspecting = booting(Some(began));
    inspecting.work.as_mut().unwrap().tasks = vec![Task::AwaitInventory];
    check(&inspecting, since(restarted), 621, expect!["BootAgain"]);
    check(
        &inspecting,
        present,
        621,
        expect![
            "GiveUp(NoCallback: the machine was switched on 600 s ago and sent no inventory (DHCP: no))"
        ],
    );

    let mut repeated = booting(Some(began));
    repeated.work.as_mut().unwrap().repeated_boots = crate::boot_again::MOST_REPEATED_BOOTS;
    check(&repeated, since(restarted), 621, gives_up());
}

#[test]
fn a_repeated_boot_begins_with_the_power_and_is_another_work() {
    let mut ready = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    ready.provision_state = State::Manageable;
    for verb in [Verb::Inspect, Verb::Provide, Verb::Clean] {
        let (mut node, _) = request_verb(&ready, verb, WorkUuid::nil(), T0).unwrap();
        while !node.provision_state.is_waiting() {
            let work = node.work.as_mut().unwrap();
            work.asked_at = matches!(work.task(), Some(Task::Power(_))).then_some(T0);
            node = start_next_task(&node, T0 + Duration::from_secs(5)).unwrap().0;
        }
        assert_eq!(node.work.as_ref().unwrap().switched_on_at, Some(T0), "when it was asked for");

        let (again, entry) = boot_again(&node, WorkUuid::max(), BootAgain::Missed, T0).unwrap();
        let work = again.work.as_ref().unwrap();
        assert_eq!(
            work.tasks[work.cursor..][..2],
            [Task::Power(PowerState::Off), Task::BootRamdisk]
        );
        assert_eq!((work.id, work.repeated_boots), (WorkUuid::max(), 1));
        assert_eq!((work.switched_on_at, work.asked_at), (None, None));
        let busy = if verb == Verb::Inspect { State::Inspecting } else { State::Cleaning };
        assert_eq!((again.provision_state, entry.to.as_str()), (busy, busy.as_str()));
        let event = "the service or its database was away during the boot, and no agent reported: the machine boots the ramdisk again";
        assert_eq!(entry.event, event);
        assert_eq!(again.target_provision_state, node.target_provision_state);
    }
}

/// Returns the result of an action on a machine and an agent that do whatever they are asked.
fn obliging(
    node: &Node,
    action: Action,
    commands: &mut Vec<CommandSeen>,
    power: &mut PowerState,
) -> ActionOutcome {
    match action {
        Action::RequestPower(change) => {
            *power = change.leads_to();
            ActionOutcome::PowerRequested
        }
        Action::Command(AgentCommand::ListSteps(kind)) => {
            commands.push(CommandSeen::Listed(offered(kind)));
            ActionOutcome::CommandGiven
        }
        Action::Command(AgentCommand::PowerOff) => {
            *power = PowerState::Off;
            ActionOutcome::CommandGiven
        }
        // The agent answers and ends.
        Action::Command(AgentCommand::FinalizeRescue) => {
            ActionOutcome::TaskDone(Box::new(node.clone()))
        }
        Action::Command(_) | Action::Step => {
            commands.push(CommandSeen::Succeeded);
            ActionOutcome::CommandGiven
        }
        Action::ChangeBootSetting(_) => ActionOutcome::BootSettingAccepted,
        Action::MakePassword => {
            ActionOutcome::PasswordMade(Box::new(node.with_made_password("new".to_owned())))
        }
        Action::ChangePassword => ActionOutcome::PasswordAsked,
        Action::UpdateFirmware => ActionOutcome::UpdateAccepted(Some("t1".to_owned())),
        Action::ChangeRaid => ActionOutcome::RaidChangeAccepted(Some("t1".to_owned())),
        Action::ReadInventory
        | Action::ReadBios
        | Action::BindVifs
        | Action::DetachVifs
        | Action::ReleaseVifs
        | Action::Connect(_)
        | Action::Disconnect
        | Action::ChangeNetworks
        | Action::ConfirmBios
        | Action::ReadFirmware
        | Action::ReadRaid
        | Action::TakeInventory
        | Action::BootRamdisk
        | Action::BootDisk
        | Action::BootOwnImage
        | Action::ConductorStep => ActionOutcome::TaskDone(Box::new(node.clone())),
    }
}

fn offered(kind: StepKind) -> Vec<OfferedStep> {
    let step = |step: &str, priority| OfferedStep {
        runner: StepRunner::Agent,
        name: StepName { interface: Interface::Deploy, step: step.to_owned() },
        priority,
        args: [].into(),
        reboots: false,
        needs_ramdisk: true,
    };
    match kind {
        StepKind::Clean => vec![step("erase_devices_metadata", 99), step("erase_devices", 0)],
        StepKind::Deploy => vec![step("write_image", 80), step("inject_files", 0)],
        StepKind::Service => vec![step("inject_files", 0)],
    }
}

/// A request to run these offered clean steps.
fn clean(steps: &[OfferedStep]) -> VerbRequest {
    let requested = |step: &OfferedStep| RequestedStep {
        name: step.name.clone(),
        args: Map::new(),
        children: None,
    };
    let steps = Some(WantedSteps::Requested(steps.iter().map(requested).collect()));
    VerbRequest { steps, ..Verb::Clean.into() }
}

/// Applies a verb to the node and plays all turns until the node is idle.
fn live(node: &Node, request: impl Into<VerbRequest>) -> Node {
    let (node, _) = request_verb(node, request, WorkUuid::nil(), T0).unwrap();
    played(node, |_| {})
}

/// Plays all turns until the node is idle, and shows each node to `watch`.
fn played(mut node: Node, mut watch: impl FnMut(&Node)) -> Node {
    let (mut commands, mut power) = (Vec::new(), PowerState::On);
    for _ in 0..100 {
        watch(&node);
        if node.work.is_none() {
            return node;
        }
        let seen = Observed {
            power: PowerSeen::Is(power),
            agent: AgentSeen::Commands(commands.clone()),
            inventory: true,
            ..seen()
        };
        let decision = planned(&node, &seen, T0);
        let written = |change: Option<NodeUpdate>, node| change.map_or(node, |it| it.node);
        node = written(decision.change, node);
        for action in decision.actions {
            let outcome = obliging(&node, action, &mut commands, &mut power);
            node = written(concluded(&node, &outcome, T0).change, node);
        }
        assert_eq!(node.work.is_some(), node.provision_state.is_busy(), "{}", node.provision_state);
    }
    panic!("{} never ends", node.provision_state);
}

#[test]
fn an_action_has_its_intent_written_before() {
    let node = at(Task::Power(PowerState::Off), None);
    let on = Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    let asked = planned(&node, &on, T0).change.unwrap().node;
    assert_eq!(asked.work.unwrap().asked_at, Some(T0));
    let node = at(Task::Agent(AgentCommand::WriteImage), None);
    let given = vec![CommandSeen::Succeeded; 2];
    let idle = Observed { agent: AgentSeen::Commands(given), ..seen() };
    let intended = planned(&node, &idle, T0).change.unwrap().node;
    assert_eq!(intended.work.unwrap().intent, Some(2));
}

#[test]
fn the_result_of_an_action_decides_what_follows() {
    let node = at(Task::BootRamdisk, None);
    let check = |node: &Node, outcome, after_secs, want| {
        let now = T0 + jiff::SignedDuration::from_secs(after_secs);
        assert_eq!(text(node, &concluded(node, &outcome, now)), want);
    };
    let done = ActionOutcome::TaskDone(Box::new(node.clone()));
    check(&node, done, 0, "NextTask");
    check(&node, ActionOutcome::PowerRequested, 0, "Now");
    check(&node, ActionOutcome::CommandGiven, 0, "Wait(1 s)");
    check(&node, ActionOutcome::NoAgent, 0, "Now");
    let unreachable = "GiveUp(BmcUnreachable: cannot reach the BMC)";
    check(&node, ActionOutcome::Failed(problem(true)), 59, "Wait(1 s)");
    check(&node, ActionOutcome::Failed(problem(true)), 61, unreachable);
    check(&node, ActionOutcome::Failed(problem(false)), 0, unreachable);
    let ready = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    let asked = crate::request_power(&ready, PowerChange::On, T0).unwrap();
    check(&asked, ActionOutcome::Failed(problem(true)), 59, "Wait(1 s)");
    check(&asked, ActionOutcome::Failed(problem(false)), 0, unreachable);
}

#[test]
fn a_node_passes_through_its_whole_life() {
    for driver in Driver::ALL {
        let node = Node::new(NodeUuid::nil(), driver, T0);
        let node = live(&node, Verb::Manage);
        assert_eq!(node.provision_state, State::Manageable);
        let node = live(&node, Verb::Inspect);
        assert_eq!(node.provision_state, State::Manageable);
        let steps = if driver == Driver::FakeHardware { vec![] } else { offered(StepKind::Clean) };
        let node = live(&node, clean(&steps));
        assert_eq!(node.provision_state, State::Manageable);
        let node = live(&node, Verb::Provide);
        assert_eq!(node.provision_state, State::Available);
        let node = live(&node, Verb::Deploy);
        assert_eq!(node.provision_state, State::Active);
        let node = live(&node, Verb::Rebuild);
        assert_eq!(node.provision_state, State::Active);
        let node = live(&node, Verb::Undeploy);
        assert_eq!(node.provision_state, State::Available);
    }
}

#[test]
fn a_retired_node_is_manageable_after_its_cleaning_and_is_not_provided() {
    let ready = live(&Node::new(NodeUuid::nil(), Driver::Redfish, T0), Verb::Manage);
    for automated_clean in [None, Some(false)] {
        let active = live(&live(&ready, Verb::Provide), Verb::Deploy);
        let retired = Node { retired: Some("old".to_owned()), automated_clean, ..active };
        let (asked, _) = request_verb(&retired, Verb::Undeploy, WorkUuid::nil(), T0).unwrap();
        assert_eq!(asked.target_provision_state, Some(State::Manageable));
        let cleaning = finish_work(&asked, WorkUuid::nil(), T0).unwrap().0;
        assert_eq!(cleaning.provision_state, State::Cleaning);
        assert_eq!(cleaning.target_provision_state, Some(State::Manageable));
        let given_up = live(&retired, Verb::Undeploy);
        assert_eq!(given_up.provision_state, State::Manageable);
        assert_eq!((given_up.target_provision_state, given_up.work.as_ref()), (None, None));
        let refused = request_verb(&given_up, Verb::Provide, WorkUuid::nil(), T0).unwrap_err();
        assert!(matches!(refused, RequestRefused::Retired { verb: "provide", .. }), "{refused}");
        let kept = Node { retired: None, ..given_up };
        assert_eq!(live(&kept, Verb::Provide).provision_state, State::Available);
    }
}

#[test]
fn the_data_of_a_lessee_is_erased_before_the_next_use() {
    let ready = live(&Node::new(NodeUuid::nil(), Driver::Redfish, T0), Verb::Manage);
    let steps_of = |lessee| {
        let node = Node { lessee, ..live(&live(&ready, Verb::Provide), Verb::Deploy) };
        let (node, _) = request_verb(&node, Verb::Undeploy, WorkUuid::nil(), T0).unwrap();
        let mut steps = Vec::new();
        played(node, |node| match node.work.as_ref().and_then(Work::task) {
            Some(Task::Step(step)) if steps.last() != Some(&step.name.step) => {
                steps.push(step.name.step.clone());
            }
            Some(_) | None => {}
        });
        steps
    };
    assert_eq!(steps_of(None), ["erase_devices_metadata"]);
    assert_eq!(steps_of(Some("p".to_owned())), ["erase_devices_metadata", "erase_devices"]);
}

#[test]
fn a_step_never_powers_off_a_node_that_must_stay_on() {
    let node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
    let ready = Node { disable_power_off: true, ..live(&node, Verb::Manage) };
    let clean = |step: &str| {
        let name = StepName { interface: Interface::Power, step: step.to_owned() };
        let steps = Some(WantedSteps::Requested(vec![RequestedStep {
            name,
            args: Map::new(),
            children: None,
        }]));
        let request = VerbRequest { verb: Verb::Clean, steps, disables_ramdisk: true };
        live(&ready, request)
    };
    assert_eq!(clean("power_on").provision_state, State::Manageable);
    for step in ["power_off", "reboot"] {
        let failed = clean(step);
        assert_eq!(failed.provision_state, State::CleanFailed, "{step}");
        let cause = failed.failure.unwrap().cause;
        assert!(cause.ends_with("has disable_power_off set and cannot be powered off"), "{cause}");
    }
}

#[test]
fn a_step_that_no_one_offers_fails_the_cleaning() {
    for driver in [Driver::Redfish, Driver::FakeHardware] {
        let ready = live(&Node::new(NodeUuid::nil(), driver, T0), Verb::Manage);
        let name = StepName { interface: Interface::Raid, step: "create".to_owned() };
        let wanted = RequestedStep { name, args: Map::new(), children: None };
        let steps = Some(WantedSteps::Requested(vec![wanted]));
        let failed = live(&ready, VerbRequest { steps, ..Verb::Clean.into() });
        assert_eq!(failed.provision_state, State::CleanFailed);
        assert_eq!(failed.maintenance, None, "no step has begun");
        let failure = failed.failure.unwrap();
        let cause = "the machine does not offer the step raid.create";
        assert_eq!((failure.reason, &*failure.cause), (Reason::StepFailed, cause));
    }
}

#[test]
fn a_deployment_runs_the_requested_steps_in_their_places() {
    let free =
        live(&live(&Node::new(NodeUuid::nil(), Driver::Redfish, T0), Verb::Manage), Verb::Provide);
    let name = offered(StepKind::Deploy)[1].name.clone();
    let wanted =
        DeployStep { step: RequestedStep { name, args: Map::new(), children: None }, priority: 70 };
    let steps = Some(WantedSteps::Deployment(vec![wanted]));
    let request = VerbRequest { steps, ..Verb::Deploy.into() };
    let (deploying, _) = request_verb(&free, request, WorkUuid::nil(), T0).unwrap();
    let mut done = Vec::new();
    let active = played(deploying, |node| {
        let task = node.work.as_ref().and_then(Work::task);
        let waits = task.filter(|_| node.provision_state == State::DeployWait);
        done.extend(waits.map(|task| task.describe().into_owned()));
    });
    done.dedup();
    let want = [
        "waiting for the agent",
        "listing the deploy steps",
        "writing the image",
        "running the deploy step deploy.inject_files",
        "setting the firmware's next boot",
        "flushing caches to disk",
        "shutting the machine down",
    ];
    assert_eq!((active.provision_state, done), (State::Active, want.map(str::to_owned).to_vec()));
}

fn erase_devices() -> Step {
    Step {
        kind: StepKind::Clean,
        runner: StepRunner::Agent,
        name: StepName::erase_devices(),
        args: Map::new(),
        priority: 10,
        reboots: false,
        children: None,
    }
}

#[test]
fn a_failed_clean_or_service_step_is_a_fault() {
    let failed = |state, task, reason| {
        let node = Node { provision_state: state, ..at(task, None) };
        fail_work(&node, Failure::new(reason, "the disk is worn out"), T0).unwrap().0.maintenance
    };
    let step = || Task::Step(erase_devices());
    let because = |fault| {
        Some(Maintenance { reason: Some("the disk is worn out".to_owned()), fault: Some(fault) })
    };
    let clean = failed(State::CleanWait, step(), Reason::StepTimedOut);
    assert_eq!(clean, because(Fault::CleanFailure));
    let service = failed(State::ServiceWait, step(), Reason::StepFailed);
    assert_eq!(service, because(Fault::ServiceFailure));
    assert_eq!(failed(State::CleanWait, step(), Reason::Aborted), None);
    assert_eq!(failed(State::DeployWait, step(), Reason::StepFailed), None);
    assert_eq!(failed(State::CleanWait, Task::AwaitAgent, Reason::NoCallback), None);
}

#[test]
fn each_step_is_in_the_history_with_its_duration() {
    let mut node = at(Task::Step(erase_devices()), Some(0));
    let later = T0 + Duration::from_secs(75);
    node.provision_state = State::CleanWait;
    node.work.as_mut().unwrap().tasks.push(Task::Agent(AgentCommand::Sync));
    let (next, entry) = start_next_task(&node, later).unwrap();
    assert_eq!(entry.unwrap().event, "the clean step deploy.erase_devices took 75 s");
    assert_eq!(next.provision_state, State::CleanWait);

    let work = node.work.as_mut().unwrap();
    work.tasks[1] = Task::Power(PowerState::Off);
    let (next, entry) = start_next_task(&node, later).unwrap();
    let told = "the clean step deploy.erase_devices took 75 s; switching the machine off";
    assert_eq!((&*entry.unwrap().event, next.provision_state), (told, State::Cleaning));
}

#[test]
fn another_boot_of_the_ramdisk_has_another_token() {
    let step = Step {
        kind: StepKind::Clean,
        runner: StepRunner::Agent,
        name: StepName::erase_devices(),
        args: Map::new(),
        priority: 10,
        reboots: true,
        children: None,
    };
    let mut node = at(Task::Agent(AgentCommand::ListSteps(StepKind::Clean)), Some(0));
    node.provision_state = State::CleanWait;
    let work = node.work.as_mut().unwrap();
    work.tasks.splice(0..0, Task::boot_and(Task::AwaitAgent));
    work.cursor = 4;
    work.add_steps(vec![step]);
    work.cursor = 5;
    let timeouts = timeouts();
    let rules = rules(&timeouts, WorkUuid::max());
    let done = Observed { agent: AgentSeen::Commands(vec![CommandSeen::Succeeded]), ..seen() };
    let next = plan(&node, &done, &rules, T0).unwrap().change.unwrap().node.work.unwrap();
    assert_eq!((next.task(), next.id), (Some(&Task::Power(PowerState::Off)), WorkUuid::max()));
}

#[test]
fn a_rescue_by_the_agent_ends_without_the_password_and_is_left_again() {
    let mut used = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    used.provision_state = State::Active;
    used.interfaces.rescue = Some(RescueInterface::Agent);
    let (mut asked, _) = request_verb(&used, Verb::Rescue, WorkUuid::nil(), T0).unwrap();
    asked.set_rescue_password("$6$salt$hash");
    let mut states = Vec::new();
    let rescued = played(asked.clone(), |node| states.push(node.provision_state));
    states.dedup();
    assert_eq!(states[..3], [State::Rescuing, State::RescueWait, State::Rescuing]);
    assert_eq!((rescued.provision_state, rescued.target_provision_state), (State::Rescued, None));
    assert_eq!(rescued.instance_info, Map::new());
    assert_eq!(live(&rescued, Verb::Unrescue).provision_state, State::Active);

    asked.provision_state = State::RescueWait;
    let failure = Failure::new(Reason::NoCallback, "no");
    let (failed, _) = fail_work(&asked, failure, T0).unwrap();
    assert_eq!((failed.provision_state, failed.instance_info), (State::RescueFailed, Map::new()));
    for (verb, to) in [(Verb::Abort, State::RescueFailed), (Verb::Undeploy, State::Deleting)] {
        let (left, _) = request_verb(&asked, verb, WorkUuid::nil(), T0).unwrap();
        assert_eq!((left.provision_state, left.instance_info), (to, Map::new()));
    }
}

#[test]
fn a_rescue_that_fails_after_its_boot_switches_the_machine_off() {
    let mut used = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    used.provision_state = State::Active;
    used.interfaces.rescue = Some(RescueInterface::Agent);
    let (mut asked, _) = request_verb(&used, Verb::Rescue, WorkUuid::nil(), T0).unwrap();
    let fatal = Problem { reason: Reason::StepFailed, cause: "no".to_owned(), transient: false };
    let fails = |node: &Node| {
        let decided =
            concluded(node, &ActionOutcome::Failed(fatal.clone()), T0 + Duration::from_secs(9));
        decided.change.unwrap().node
    };
    let failed = fails(&asked);
    let state = State::RescueFailed;
    assert_eq!((failed.provision_state, &failed.power_request), (state, &None), "it still runs");

    asked.work.as_mut().unwrap().switched_on_at = Some(T0);
    let failed = fails(&asked);
    let deadline = T0 + Duration::from_secs(9) + timeouts().power;
    let off = PowerRequest::new(PowerChange::ForceOff, deadline);
    assert_eq!((failed.provision_state, &failed.power_request), (state, &Some(off)));
    let is_on = Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    assert_eq!(planned(&failed, &is_on, T0).actions, [Action::RequestPower(PowerChange::ForceOff)]);
    let is_off = Observed { power: PowerSeen::Is(PowerState::Off), ..seen() };
    let ended = planned(&failed, &is_off, T0).change.unwrap().node;
    assert_eq!((ended.power_state, &ended.power_request), (Some(PowerState::Off), &None));
    assert_eq!(ended.failure, failed.failure, "the node tells why the rescue failed");
    let again = request_verb(&failed, Verb::Rescue, WorkUuid::nil(), T0).unwrap().0;
    assert_eq!(again.power_request, None, "the work controls the power");

    asked.provision_state = State::Servicing;
    assert_eq!(fails(&asked).power_request, None);
}

#[test]
fn a_failed_verb_can_be_repeated_from_the_failed_state() {
    let node =
        live(&live(&Node::new(NodeUuid::nil(), Driver::Redfish, T0), Verb::Manage), Verb::Provide);
    let (deploying, _) = request_verb(&node, Verb::Deploy, WorkUuid::nil(), T0).unwrap();
    let failure = Failure::new(Reason::StepFailed, "the checksum is wrong");
    let (failed, entry) = fail_work(&deploying, failure.clone(), T0).unwrap();
    assert_eq!((failed.provision_state, &failed.failure), (State::DeployFailed, &Some(failure)));
    assert_eq!(failed.target_provision_state, Some(State::Active));
    assert!(entry.event.starts_with("the checksum is wrong. Hint: "), "{}", entry.event);
    let again = live(&failed, Verb::Deploy);
    assert_eq!((again.provision_state, again.failure), (State::Active, None));
}
