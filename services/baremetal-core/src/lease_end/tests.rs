use super::*;
use crate::lending::tests::{at, ended, gone, lent, node, schedule, take};
use crate::{Failure, Maintenance, Reason};

fn rules<'a>(schedule: &'a LeaseSchedule, host: Option<&'a str>) -> LeaseRules<'a> {
    let power_timeout = Duration::from_secs(60);
    LeaseRules { schedule, power_timeout, host, new_work: WorkUuid::nil(), recorded_obstacle: None }
}

/// Writes a decision in one line.
fn text<A: std::fmt::Debug>(decision: Decision<NodeUpdate, A>) -> String {
    match (decision.change, decision.actions.as_slice(), decision.next_turn) {
        (None, [call], _) => format!("{call:?}"),
        (None, _, Requeue::After(pause)) if pause.as_secs().is_multiple_of(3600) => {
            format!("in {} h", pause.as_secs() / 3600)
        }
        (None, _, Requeue::After(pause)) => format!("in {pause:?}"),
        (None, _, Requeue::OnChange) => "on change".to_owned(),
        (None, _, Requeue::Now) => "now".to_owned(),
        (Some(NodeUpdate { stage: Some(stage), .. }), _, _) => format!("{stage:?}"),
        (Some(NodeUpdate { obstacle: Some(Obstacle::LeaseEnd(why)), .. }), _, next_turn) => {
            assert_eq!(next_turn, Requeue::After(AFTER_HOLDING));
            why
        }
        (Some(NodeUpdate { node, .. }), _, _) => match (node.power_request, node.lending) {
            (Some(request), _) => format!("{:?}", request.remaining),
            (None, None) => "return".to_owned(),
            (None, Some(NodeLease { drain: Some(drain), .. })) => format!("{drain:?}"),
            (None, Some(_)) => node.provision_state.to_string(),
        },
    }
}

#[track_caller]
fn check(node: &Node, hour: i64, want: &str) {
    assert_eq!(text(plan_lending(node, &rules(&schedule(), None), at(hour))), want);
}

#[test]
fn each_stage_of_the_lease_comes_in_its_time() {
    let lent = lent(State::Active);
    check(&lent, 1, "in 75 h");
    check(&lent, 76, &format!("Warn {{ ends_at: {} }}", at(100)));
    let ended = ended(State::Active);
    check(&ended, 100, "[SoftOff]");
    let off = Node { power_state: Some(PowerState::Off), ..ended };
    check(&off, 101, "in 9 h");
    check(&off, 110, &format!("WarnOfDeletion {{ deleted_at: {} }}", at(120)));
    check(&gone(State::Active), 120, "deleting");
    check(&gone(State::Manageable), 120, "cleaning");
    check(&gone(State::Available), 121, "return");
    check(&node(State::Active), 1, "on change");
}

#[test]
fn the_end_of_a_lease_waits_for_work_in_progress() {
    for state in [State::Deploying, State::DeployWait, State::Cleaning, State::Deleting] {
        check(&ended(state), 100, "in 10 h");
        check(&gone(state), 120, "on change");
    }
    let asked = request_power(&lent(State::Active), PowerChange::On, at(101)).unwrap();
    let ended = take(&asked, lease::LeaseStage::SwitchOff { deleted_at: at(120) }, 100);
    check(&ended, 100, "in 10 h");
}

#[test]
fn the_end_of_a_lease_aborts_work_that_holds() {
    for (held, failed) in [
        (State::CleanHold, State::CleanFailed),
        (State::DeployHold, State::DeployFailed),
        (State::ServiceHold, State::ServiceFailed),
    ] {
        check(&lent(held), 1, "in 75 h");
        check(&ended(held), 100, failed.as_str());
        check(&gone(held), 120, failed.as_str());
    }
    for state in [State::ServiceFailed, State::Rescued, State::UnrescueFailed] {
        check(&ended(state), 100, "[SoftOff]");
        check(&gone(state), 120, "deleting");
    }
}

#[test]
fn an_obstacle_to_the_return_keeps_the_node_as_it_is() {
    let protected = Node { protected: Some("precious".to_owned()), ..gone(State::Active) };
    check(&protected, 120, "on change");
    check(&gone(State::CleanFailed), 120, "on change");
    let stays_on = Node { disable_power_off: true, ..gone(State::Active) };
    check(&stays_on, 120, "on change");
    let stays_on = Node { disable_power_off: true, ..ended(State::Active) };
    check(&stays_on, 100, "in 10 h");
}

#[test]
fn a_node_that_cannot_return_is_neither_drained_nor_warned_about() {
    let schedule = schedule();
    let in_use = |change: fn(&mut Node)| {
        let mut node = gone(State::Active);
        change(&mut node);
        plan_lending(&node, &rules(&schedule, Some("h1")), at(120))
    };
    let rest: Decision<NodeUpdate, ClusterdCall> = Decision::rest(Requeue::OnChange);
    assert_eq!(in_use(|node| node.protected = Some("precious".to_owned())), rest);
    assert_eq!(in_use(|node| node.disable_power_off = true), rest);
    let show = ClusterdCall::Show { host: "h1".to_owned() };
    assert_eq!(in_use(|_| {}), Decision::act(show));

    let idle = |change: fn(&mut Node)| {
        let mut node = gone(State::Manageable);
        change(&mut node);
        plan_lending(&node, &rules(&schedule, None), at(120))
    };
    assert_eq!(idle(|node| node.disable_power_off = true), rest);
    assert_eq!(idle(|node| node.maintenance = Some(Maintenance::requested(None))), rest);
    assert_eq!(idle(|node| node.retired = Some("old".to_owned())), rest);
}

#[test]
fn a_stage_is_due_at_its_time_and_only_for_a_node_with_a_lease() {
    let schedule = schedule();
    let lent = lent(State::Deploying);
    assert!(!is_lease_stage_due(&lent, &schedule, at(75)));
    assert!(is_lease_stage_due(&lent, &schedule, at(76)));
    assert!(!is_lease_stage_due(&node(State::Deploying), &schedule, at(76)));
    assert!(!is_lease_stage_due(&gone(State::Deleting), &schedule, at(200)));
}

#[test]
fn the_end_of_a_lease_gives_the_machine_its_time_to_switch_off() {
    let schedule = schedule();
    let decision = plan_lending(&ended(State::Active), &rules(&schedule, None), at(100));
    let request = decision.change.unwrap().node.power_request.unwrap();
    assert_eq!(request.deadline, at(100) + Duration::from_secs(60));
}

#[test]
fn a_machine_is_forced_off_after_a_soft_power_off_failed() {
    let failure = crate::Failure::new(crate::Reason::PowerStuck, "it stayed on".to_owned());
    let stuck = Node { failure: Some(failure), ..ended(State::Active) };
    check(&stuck, 100, "[ForceOff]");
}

#[test]
fn a_machine_that_failed_is_asked_again_after_a_pause() {
    let failure = Some(Failure::new(Reason::PowerStuck, "it stayed on".to_owned()));
    let failed = Node { failure, updated_at: Some(at(100)), ..ended(State::Active) };
    check(&failed, 100, "in 60s");
    // The clock was set back.
    check(&failed, 99, "[ForceOff]");
    check(&failed, 101, "[ForceOff]");
    // A node without a failure is not paused, nor is the return of a clean node, which asks its machine for nothing.
    check(&Node { failure: None, ..failed.clone() }, 100, "[SoftOff]");
    let clean =
        Node { failure: failed.failure, updated_at: Some(at(121)), ..gone(State::Available) };
    check(&clean, 121, "return");
}

#[test]
fn a_compute_host_is_drained_before_its_machine_is_switched_off() {
    let (schedule, ended) = (schedule(), ended(State::Active));
    let rules = rules(&schedule, Some("h1"));
    let planned = |node: &Node| text(plan_lending(node, &rules, at(100)));
    let answered = |node: &Node, seen| text(after_lease_call(node, &seen, &rules, at(100)));
    assert_eq!(planned(&ended), r#"Show { host: "h1" }"#);
    assert_eq!(answered(&ended, DrainSeen::NoHost), "[SoftOff]");
    // The drain is recorded before clusterd is asked for it.
    let recorded = r#"LeaseDrain { host: "h1", owner: Request }"#;
    assert_eq!(answered(&ended, DrainSeen::NotDrained), recorded);
    let noted = drain_noted(&ended, "h1", DrainOwner::Request);
    assert_eq!(planned(&noted), r#"Drain { host: "h1", forced: [] }"#);
    assert_eq!(answered(&noted, DrainSeen::Draining(2)), "in 15s");
    assert_eq!(answered(&noted, DrainSeen::Drained), "[SoftOff]");
}

#[test]
fn an_obstacle_to_the_end_of_a_lease_is_recorded_once() {
    let (schedule, ended) = (schedule(), ended(State::Active));
    let noted = drain_noted(&ended, "h1", DrainOwner::Request);
    let mut rules = rules(&schedule, Some("h1"));
    let refused = DrainSeen::Refused("quorum".to_owned());
    let update = after_lease_call(&noted, &refused, &rules, at(100)).change.unwrap();
    assert_eq!((update.node, update.history.len()), (noted.clone(), 1));
    rules.recorded_obstacle = update.obstacle;
    assert_eq!(text(after_lease_call(&noted, &refused, &rules, at(101))), "in 15s");
    let other = DrainSeen::Refused("another quorum".to_owned());
    let reported = text(after_lease_call(&noted, &other, &rules, at(101)));
    assert!(reported.ends_with("another quorum"), "{reported}");
}
