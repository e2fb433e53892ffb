//! Property tests of whole lives of nodes: for any requests and observations, every change of state is in the table, and work ends.

use std::cell::RefCell;
use std::collections::BTreeSet;

use hardware::{BootMode, BootSetting, BootSettings};
use lease::{Length, Terms};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::*;
use crate::boot_again::MOST_REPEATED_BOOTS;
use crate::{
    HASHED_RESCUE_PASSWORD, Interface, LendRequest, Maintenance, RescueInterface, TRANSITIONS,
    lend, request_power, with_stage_taken,
};

type Checked = Result<(), TestCaseError>;

const SECURE: BootSetting = BootSetting::SecureBoot(true);

/// One event in the life of a node.
#[derive(Clone, Debug)]
enum Happening {
    /// A caller requests a change of provision state.
    Asked(VerbRequest),
    /// A caller requests one of the changes that the node's state allows.
    Allowed(prop::sample::Index),
    /// A caller requests a change of power.
    Power(PowerChange),
    /// One turn in which the machine does what the current task needs.
    Obliged,
    /// One turn with this observation, this many seconds later, in which an action ends with this result.
    Seen(Box<Observed>, u64, Performed),
    Restarted,
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Performed {
    Well,
    /// A permanent failure. A transient one would only repeat the action.
    Badly,
    /// The conductor was killed before it performed the action.
    Interrupted,
}

/// A node and its clock.
struct Life {
    node: Node,
    now: Timestamp,
    watching_since: Timestamp,
    /// The changes of state so far.
    taken: BTreeSet<(State, State)>,
}

impl Life {
    fn of(node: Node) -> Life {
        Life { node, now: T0, watching_since: T0, taken: BTreeSet::new() }
    }

    /// Checks that the change to `next` is legal, and makes it.
    fn becomes(&mut self, next: Node) -> Checked {
        let (from, to) = (self.node.provision_state, next.provision_state);
        let is_row = TRANSITIONS.iter().any(|row| (row.0, row.2) == (from, to));
        prop_assert!(from == to || is_row, "from {} to {}", from, to);
        prop_assert_eq!(next.work.is_some(), to.is_busy(), "{}", to);
        prop_assert!(!to.is_failed() || next.failure.is_some(), "{} without a failure", to);
        prop_assert!(next.work.is_none() || next.power_request.is_none(), "two own its power");
        let keeps_password = matches!(to, State::Rescuing | State::RescueWait)
            || (to == State::Rescued && next.rescue_interface() == RescueInterface::Fake);
        let has_password = next.instance_info.contains_key(HASHED_RESCUE_PASSWORD);
        prop_assert!(keeps_password || !has_password, "{} with a rescue password", to);
        self.taken.insert((from, to));
        self.node = next;
        Ok(())
    }

    fn befalls(&mut self, happening: &Happening) -> Checked {
        match happening {
            Happening::Asked(request) => self.asked(request),
            Happening::Allowed(index) => {
                let state = self.node.provision_state;
                let mut allowed = requests();
                allowed.retain(|request| state.on(request.verb.event()).is_ok());
                if allowed.is_empty() { Ok(()) } else { self.asked(index.get(&allowed)) }
            }
            Happening::Power(change) => {
                match request_power(&self.node, *change, self.now + timeouts().power) {
                    Ok(asked) => self.becomes(asked),
                    Err(_) => Ok(()),
                }
            }
            Happening::Obliged => self.turn(&self.wanted(), Performed::Well).map(drop),
            Happening::Seen(seen, after, performed) => {
                self.now += Duration::from_secs(*after);
                let seen = Observed { watching_since: self.watching_since, ..(**seen).clone() };
                self.turn(&seen, *performed).map(drop)
            }
            Happening::Restarted => {
                self.watching_since = self.now;
                Ok(())
            }
        }
    }

    fn asked(&mut self, request: &VerbRequest) -> Checked {
        match request_verb(&self.node, request.clone(), WorkUuid::nil(), self.now) {
            Ok((mut asked, _)) => {
                if request.verb == Verb::Rescue {
                    asked.set_rescue_password("$6$salt$hash");
                }
                self.becomes(asked)
            }
            Err(_) => Ok(()),
        }
    }

    /// The observation of a machine that does what it should.
    fn wanted(&self) -> Observed {
        let work = self.node.work.as_ref();
        let power = match work.and_then(Work::task) {
            Some(Task::Power(wanted)) => *wanted,
            Some(_) => PowerState::On,
            None => self.node.target_power_state().unwrap_or(PowerState::On),
        };
        let given = work.and_then(|work| work.intent).map_or(0, |before| before + 1);
        let mut commands = vec![CommandSeen::Succeeded; given];
        if let Some(Task::Agent(AgentCommand::ListSteps(kind))) = work.and_then(Work::task) {
            let listed = CommandSeen::Listed(offered(*kind));
            commands.last_mut().into_iter().for_each(|last| *last = listed.clone());
        }
        let secure_boot = matches!(
            work.and_then(Work::task),
            Some(Task::SetBoot(SECURE) | Task::ConfirmBoot(SECURE))
        );
        let settings = BootSettings { mode: Some(BootMode::Uefi), secure_boot: Some(secure_boot) };
        Observed {
            power: PowerSeen::Is(power),
            boot_settings: BootSettingsSeen::Are(settings),
            agent: AgentSeen::Commands(commands),
            inventory: true,
            watching_since: self.watching_since,
            ..seen()
        }
    }

    /// Plays one turn as the conductor does; returns whether the node is idle.
    fn turn(&mut self, seen: &Observed, performed: Performed) -> Result<bool, TestCaseError> {
        let timeouts = timeouts();
        let rules = rules(&timeouts, WorkUuid::nil());
        let decision = legal(plan(&self.node, seen, &rules, self.now))?;
        if decision == Decision::rest(Requeue::OnChange) {
            let is_idle = self.node.work.is_none() || self.node.provision_state.is_held();
            prop_assert!(is_idle && self.node.power_request.is_none());
            return Ok(true);
        }
        let is_command = |it: &Action| matches!(it, Action::Command(_) | Action::Step);
        // The version of the record tells the agent which of two commands is older.
        prop_assert!(decision.change.is_some() || !decision.actions.iter().any(is_command));
        let waits = decision.change.is_none() && decision.actions.is_empty();
        prop_assert!(!waits || decision.next_turn > Requeue::After(Duration::ZERO));
        if let Some(NodeUpdate { node, .. }) = decision.change {
            let boots = |node: &Node| node.work.as_ref().map_or(0, |work| work.repeated_boots);
            if node.work.is_some() && boots(&node) > boots(&self.node) {
                let work = self.node.work.as_ref();
                let is_lost = work.is_some_and(|work| work.lost_rescue(seen.watching_since))
                    && matches!(seen.agent, AgentSeen::Silent { .. });
                prop_assert!(is_lost || seen.agent == AgentSeen::Absent);
                prop_assert!(boots(&node) <= MOST_REPEATED_BOOTS, "{} boots", boots(&node));
            }
            self.becomes(node)?;
        }
        for action in decision.actions {
            self.act(action, &rules, performed)?;
        }
        Ok(false)
    }

    fn act(&mut self, action: Action, rules: &PlanRules<'_>, performed: Performed) -> Checked {
        let outcome = match performed {
            Performed::Interrupted => return Ok(()),
            Performed::Badly => ActionOutcome::Failed(problem(false)),
            Performed::Well => obliging(&self.node, action, &mut Vec::new(), &mut PowerState::Off),
        };
        let (since, now) = (self.watching_since, self.now);
        match legal(after_action(&self.node, &outcome, since, rules, now))?.change {
            Some(NodeUpdate { node, .. }) => self.becomes(node),
            None => Ok(()),
        }
    }

    /// Plays turns with the same observation until the work ends, well or badly.
    fn rests_in_the_end(&mut self, seen: &Observed) -> Checked {
        let power = match &seen.power {
            // The conductor asks the BMC if the task needs the power state.
            PowerSeen::NotAsked => PowerSeen::Failed(problem(true)),
            seen @ (PowerSeen::Is(_) | PowerSeen::Failed(_)) => seen.clone(),
        };
        let seen = Observed { power, watching_since: self.watching_since, ..seen.clone() };
        for _ in 0..500 {
            if self.turn(&seen, Performed::Well)? {
                return Ok(());
            }
            self.now += timeouts().power;
        }
        Err(TestCaseError::fail(format!(
            "it stays {}: {:?}",
            self.node.provision_state, self.node.work
        )))
    }
}

fn legal<T>(next: Result<T, crate::IllegalEvent>) -> Result<T, TestCaseError> {
    next.map_err(|illegal| TestCaseError::fail(illegal.to_string()))
}

fn requests() -> Vec<VerbRequest> {
    let verbs = [
        Verb::Manage,
        Verb::Inspect,
        Verb::Provide,
        Verb::Clean,
        Verb::Deploy,
        Verb::Rebuild,
        Verb::Undeploy,
        Verb::Abort,
        Verb::Adopt,
        Verb::Service,
        Verb::Rescue,
        Verb::Unrescue,
        Verb::Unhold,
    ];
    let offered = offered(StepKind::Clean);
    let step = |name: &str| {
        let name = StepName { interface: Interface::Deploy, step: name.to_owned() };
        RequestedStep { name, args: Map::new(), children: None }
    };
    let held = |verb: Verb, steps| VerbRequest { steps: Some(steps), ..verb.into() };
    let hold = DeployStep { step: step("hold"), priority: 50 };
    let on_children = RequestedStep { children: Some(crate::ChildNodes::All), ..step("power_off") };
    let with_steps = [
        clean(&offered),
        clean(&offered[1..]),
        held(Verb::Clean, WantedSteps::Requested(vec![step("hold"), step("power_off")])),
        held(Verb::Deploy, WantedSteps::Deployment(vec![hold])),
        held(Verb::Service, WantedSteps::Service(vec![step("hold")])),
        held(Verb::Service, WantedSteps::Service(vec![step("wait"), step("hold")])),
        held(Verb::Service, WantedSteps::Service(vec![step("unknown")])),
        held(Verb::Service, WantedSteps::Service(vec![on_children])),
        VerbRequest { disables_ramdisk: true, ..Verb::Service.into() },
    ];
    verbs.map(VerbRequest::from).into_iter().chain(with_steps).collect()
}

fn changes() -> impl Strategy<Value = PowerChange> {
    prop::sample::select(vec![
        PowerChange::On,
        PowerChange::ForceOff,
        PowerChange::SoftOff,
        PowerChange::ForceRestart,
        PowerChange::SoftRestart,
    ])
}

/// Any observation: machines that do not switch, fail or boot something else; agents that are silent, new, forgetful, slow or failing.
fn observations() -> impl Strategy<Value = Observed> {
    let power = prop_oneof![
        Just(PowerSeen::NotAsked),
        Just(PowerSeen::Is(PowerState::On)),
        Just(PowerSeen::Is(PowerState::Off)),
        any::<bool>().prop_map(|transient| PowerSeen::Failed(problem(transient))),
    ];
    let command = prop_oneof![
        Just(CommandSeen::Running(None)),
        Just(CommandSeen::Succeeded),
        Just(CommandSeen::Listed(offered(StepKind::Clean))),
        Just(CommandSeen::Listed(offered(StepKind::Deploy))),
        Just(CommandSeen::Listed(offered(StepKind::Service))),
        Just(CommandSeen::Failed("no".to_owned())),
    ];
    let silent = (0_i64..10_000, any::<bool>()).prop_map(|(since, transient)| AgentSeen::Silent {
        since: Timestamp::from_second(since).expect("it is a time"),
        problem: problem(transient),
    });
    let refuses = (0_u32..9, 0_i64..10_000, any::<bool>()).prop_map(|(calls, since, transient)| {
        let since = Timestamp::from_second(since).expect("it is a time");
        AgentSeen::Refuses { calls, since, problem: problem(transient), is_recorded: false }
    });
    let agent = prop_oneof![
        Just(AgentSeen::Absent),
        Just(AgentSeen::Present),
        prop::collection::vec(command, 0..4).prop_map(AgentSeen::Commands),
        silent,
        refuses,
    ];
    let settings = prop::option::of(any::<bool>()).prop_map(|secure_boot| {
        BootSettingsSeen::Are(BootSettings { mode: Some(BootMode::Uefi), secure_boot })
    });
    let boot_settings = prop_oneof![
        Just(BootSettingsSeen::NotSeen),
        settings,
        any::<bool>().prop_map(|transient| BootSettingsSeen::Failed(problem(transient))),
    ];
    let idle = prop::option::of(Just(WorkUuid::max()));
    (power, boot_settings, agent, idle, any::<bool>()).prop_map(
        |(power, boot_settings, agent, idle_ramdisk, inventory)| Observed {
            power,
            boot_settings,
            agent,
            idle_ramdisk,
            inventory,
            ..seen()
        },
    )
}

fn happenings() -> impl Strategy<Value = Happening> {
    let performed =
        prop::sample::select(vec![Performed::Well, Performed::Badly, Performed::Interrupted]);
    let seen = (observations(), 0_u64..4000, performed);
    prop_oneof![
        12 => Just(Happening::Obliged),
        1 => prop::sample::select(requests()).prop_map(Happening::Asked),
        3 => any::<prop::sample::Index>().prop_map(Happening::Allowed),
        1 => changes().prop_map(Happening::Power),
        1 => seen.prop_map(|(seen, after, performed)| Happening::Seen(Box::new(seen), after, performed)),
        1 => Just(Happening::Restarted),
    ]
}

/// Nodes that are enrolled, manageable, available, in use or rescued, of every driver, with any boot, inspect and rescue interface, and any
/// flags.
fn nodes() -> impl Strategy<Value = Node> {
    let driver = prop::sample::select(Driver::ALL.to_vec());
    let ways = driver.prop_flat_map(|driver| {
        let one_of = |interface| prop::sample::select(driver.supported(interface).to_vec());
        let interfaces = [Interface::Boot, Interface::Inspect, Interface::Rescue];
        (Just(driver), interfaces.map(|it| one_of(it).prop_map(move |chosen| (it, chosen))))
    });
    let state = prop::sample::select(vec![
        State::Enroll,
        State::Manageable,
        State::Available,
        State::Active,
        State::Rescued,
    ]);
    let lent = prop::option::of(any::<bool>());
    let rarely = || prop::bool::weighted(0.2);
    let flags = [rarely(), rarely(), rarely(), rarely(), rarely(), rarely()];
    (ways, state, flags, prop::option::of(any::<bool>()), lent).prop_map(
        |((driver, interfaces), provision_state, flags, automated_clean, lent)| {
            let [maintenance, protected, retired, disable_power_off, is_secure, is_fast] = flags;
            let mut node = Node::new(NodeUuid::nil(), driver, T0);
            node.driver_info.insert("fast_track".to_owned(), is_fast.into());
            if is_secure {
                let wanted = serde_json::json!({"secure_boot": true, "boot_mode": "uefi"});
                node.instance_info.insert("capabilities".to_owned(), wanted);
            }
            for (interface, chosen) in interfaces {
                assert!(node.interfaces.choose(interface, chosen));
            }
            let node = Node {
                provision_state,
                maintenance: maintenance.then_some(Maintenance::requested(None)),
                protected: protected.then(String::new),
                retired: retired.then(String::new),
                disable_power_off,
                automated_clean,
                ..node
            };
            let Some(is_over) = lent else { return node };
            let length = Length::from_secs(3600).expect("an hour is a length");
            let loan = LendRequest { lessee: "lab".to_owned(), length, notify: None };
            let (lent, _) =
                lend(&node, loan, "root", Terms::default(), T0).expect("it can be lent");
            if is_over { with_stage_taken(&lent, lease::LeaseStage::Delete, T0).0 } else { lent }
        },
    )
}

fn lives() -> impl Strategy<Value = (Node, Vec<Happening>, Observed)> {
    (nodes(), prop::collection::vec(happenings(), 0..120), observations())
}

fn lived(
    (node, happenings, last): (Node, Vec<Happening>, Observed),
) -> Result<Life, TestCaseError> {
    let mut life = Life::of(node);
    for happening in &happenings {
        life.befalls(happening)?;
    }
    life.rests_in_the_end(&last)?;
    Ok(life)
}

proptest! {
    #[test]
    fn every_plan_is_legal(life in lives()) {
        lived(life)?;
    }
}

#[test]
fn every_row_of_the_table_is_taken_by_some_life() {
    let config = Config { cases: 6000, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut taken = BTreeSet::new();
    let all = RefCell::new(&mut taken);
    let lives = TestRunner::new_with_rng(config, rng).run(&lives(), |life| {
        all.borrow_mut().extend(lived(life)?.taken);
        Ok(())
    });
    lives.expect("every plan is legal");
    for (from, event, to) in TRANSITIONS {
        assert!(taken.contains(&(*from, *to)), "no life went from {from} to {to} by {event:?}");
    }
}
