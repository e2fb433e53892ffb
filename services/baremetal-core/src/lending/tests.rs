use jiff::SignedDuration;

use super::*;
use crate::{
    Driver, NodeUuid, RequestRefused, Task, Verb, WorkUuid, finish_work, request_power,
    request_verb,
};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

/// The moment `hours` hours after the epoch.
fn at(hours: i64) -> Timestamp {
    T0 + SignedDuration::from_hours(hours)
}

fn hours(hours: u64) -> Length {
    Length::from_secs(hours * 3600).unwrap()
}

/// A warning 24 h before the end, 12 h notice, an undo window of 20 h.
fn ladder() -> LeaseSchedule {
    let raw = r#"{"warn_before": ["24h"], "notice": "12h", "undo_window": "20h"}"#;
    serde_json::from_str::<LeaseSchedule>(raw).unwrap().without_snapshot()
}

fn node(state: State) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    node.provision_state = state;
    node.power_state = Some(PowerState::On);
    node
}

fn loan(length: u64) -> LendRequest {
    LendRequest { lessee: "lab".to_owned(), length: hours(length), notify: None }
}

/// A node with a lease of 100 h.
fn lent(state: State) -> Node {
    lend(&node(state), loan(100), "root", Terms::default(), T0).unwrap().0
}

fn take(node: &Node, step: lease::LeaseStage, hour: i64) -> Node {
    with_stage_taken(node, step, at(hour)).0
}

fn ended(state: State) -> Node {
    let warned = take(&lent(state), lease::LeaseStage::Warn { ends_at: at(100) }, 76);
    take(&warned, lease::LeaseStage::SwitchOff { deleted_at: at(120) }, 100)
}

fn gone(state: State) -> Node {
    let warned =
        take(&ended(state), lease::LeaseStage::WarnOfDeletion { deleted_at: at(120) }, 110);
    take(&warned, lease::LeaseStage::Delete, 120)
}

#[track_caller]
fn check(node: &Node, hour: i64, want: LendingStep) {
    assert_eq!(plan_lending(node, &ladder(), at(hour)), want);
}

const fn rest(until: Option<Timestamp>) -> LendingStep {
    wait(until, None)
}

#[test]
fn each_stage_of_the_lease_comes_in_its_time() {
    let lent = lent(State::Active);
    check(&lent, 1, rest(Some(at(76))));
    check(&lent, 76, LendingStep::Take(lease::LeaseStage::Warn { ends_at: at(100) }));
    let ended = ended(State::Active);
    check(&ended, 100, LendingStep::Power(PowerChange::SoftOff));
    let off = Node { power_state: Some(PowerState::Off), ..ended };
    check(&off, 101, rest(Some(at(110))));
    check(&off, 110, LendingStep::Take(lease::LeaseStage::WarnOfDeletion { deleted_at: at(120) }));
    check(&gone(State::Active), 120, LendingStep::Undeploy);
    check(&gone(State::Available), 121, LendingStep::Release);
}

#[test]
fn the_end_of_a_lease_waits_for_work_in_progress() {
    for state in [State::Deploying, State::DeployWait, State::Cleaning, State::Deleting] {
        check(&ended(state), 100, rest(Some(at(110))));
        check(&gone(state), 120, rest(None));
    }
    let asked = request_power(&lent(State::Active), PowerChange::On, at(101)).unwrap();
    let ended = take(&asked, lease::LeaseStage::SwitchOff { deleted_at: at(120) }, 100);
    check(&ended, 100, rest(Some(at(110))));
}

#[test]
fn an_obstacle_to_the_return_is_reported() {
    let held = |node: Node| {
        let step = plan_lending(&node, &ladder(), at(120));
        let LendingStep::Wait { held, .. } = step else { panic!("{step:?}") };
        held
    };
    let protected = Node { protected: Some("precious".to_owned()), ..gone(State::Active) };
    assert_eq!(held(protected), Some("the node is protected"));
    assert!(held(gone(State::CleanFailed)).is_some_and(|why| why.contains("\"manage\"")));
    let stays_on = Node { disable_power_off: true, ..gone(State::Active) };
    assert_eq!(held(stays_on), Some("the node has disable_power_off set"));
    let stays_on = Node { disable_power_off: true, ..ended(State::Active) };
    check(&stays_on, 100, wait(Some(at(110)), Some("the node has disable_power_off set")));
}

#[test]
fn a_machine_is_forced_off_after_a_soft_power_off_failed() {
    let failure = crate::Failure::new(crate::Reason::PowerStuck, "it stayed on".to_owned());
    let stuck = Node { failure: Some(failure), ..ended(State::Active) };
    check(&stuck, 100, LendingStep::Power(PowerChange::ForceOff));
}

#[test]
fn a_node_whose_lease_ended_is_neither_powered_on_nor_installed() {
    let ended = ended(State::Active);
    let refused = request_power(&ended, PowerChange::On, at(101)).unwrap_err();
    assert!(matches!(refused, RequestRefused::LeaseEnded { .. }), "{refused}");
    assert!(request_power(&ended, PowerChange::ForceRestart, at(101)).is_err());
    assert!(request_power(&ended, PowerChange::ForceOff, at(101)).is_ok());
    assert!(request_verb(&ended, Verb::Rebuild, WorkUuid::nil(), at(101)).is_err());
    assert!(request_verb(&ended, Verb::Undeploy, WorkUuid::nil(), at(101)).is_ok());
    let (again, _) = undo(&ended, "ann", &ladder(), Terms::default(), at(101)).unwrap();
    assert!(request_power(&again, PowerChange::On, at(101)).is_ok());
}

#[test]
fn a_returned_node_is_erased_even_without_automated_cleaning() {
    let unclean = Node { automated_clean: Some(false), ..gone(State::Active) };
    let (deleting, _) = request_verb(&unclean, Verb::Undeploy, WorkUuid::nil(), at(120)).unwrap();
    let (cleaning, _) = finish_work(&deleting, WorkUuid::nil(), at(120)).unwrap();
    let erases = Task::Agent(crate::AgentCommand::EraseDisks);
    assert!(cleaning.work.is_some_and(|work| work.tasks.contains(&erases)));
    assert_eq!(cleaning.lessee.as_deref(), Some("lab"));
    let (free, _) = returned(&gone(State::Available), at(121));
    assert_eq!((free.lessee, free.lending), (None, None));
}

#[test]
fn a_lent_node_is_not_lent_to_another_project() {
    let again = |node: &Node, lessee: &str| {
        let loan = LendRequest { lessee: lessee.to_owned(), ..loan(10) };
        lend(node, loan, "root", Terms::default(), at(1)).map(|(node, _)| node)
    };
    let lent = lent(State::Active);
    assert!(matches!(again(&lent, "other"), Err(LendError::Taken { .. })));
    // The new term is shorter, and the lessee is warned before its end.
    let shorter = again(&lent, "lab").unwrap();
    check(&shorter, 1, rest(Some(at(6))));
    assert!(matches!(again(&gone(State::Active), "lab"), Err(LendError::Returning { .. })));
    let short = Terms::new(None, Some(hours(5))).unwrap();
    let refused = lend(&node(State::Available), loan(6), "root", short, T0).unwrap_err();
    assert_eq!(refused.to_string(), "a lease lasts at most 5h");
}

#[test]
fn a_node_without_a_lease_cannot_be_extended() {
    let node = node(State::Active);
    let refused = extend(&node, at(9), "ann", Terms::default(), T0).unwrap_err();
    assert!(matches!(refused, LendError::NotLent { .. }));
    check(&node, 1, rest(None));
}

#[test]
fn a_lease_for_a_reservation_ends_with_the_instance() {
    for (reserved, wanted) in [(true, RequiredState::Deleted), (false, RequiredState::AsAsked)] {
        let mut node = lent(State::Deleting);
        node.lending.as_mut().unwrap().reserved = reserved;
        let (cleaning, _) = finish_work(&node, WorkUuid::nil(), at(10)).unwrap();
        assert_eq!(cleaning.wanted_by_lease(), wanted);
        assert_eq!(cleaning.lessee.as_deref(), Some("lab"), "until it is clean");
    }
}

#[test]
fn a_retired_node_is_returned_when_its_cleaning_ends() {
    let node = Node { retired: Some("old".to_owned()), ..gone(State::Active) };
    let (deleting, _) = request_verb(&node, Verb::Undeploy, WorkUuid::nil(), at(120)).unwrap();
    let (cleaning, _) = finish_work(&deleting, WorkUuid::nil(), at(120)).unwrap();
    let erases = Task::Agent(crate::AgentCommand::EraseDisks);
    assert!(cleaning.work.as_ref().unwrap().tasks.contains(&erases));
    assert!(cleaning.lessee.is_some());
    let (free, entry) = finish_work(&cleaning, WorkUuid::nil(), at(121)).unwrap();
    assert_eq!(free.provision_state, State::Manageable);
    assert_eq!((free.lessee, free.lending), (None, None));
    assert_eq!(entry.event, "done, and returned by its lessee");
}

#[test]
fn a_lessee_is_not_told_whose_servers_keep_a_node() {
    let why = "cluster blue of project b would lose its quorum";
    let entry = end_held(&ended(State::Active), why, at(101));
    let want = "the lease ended at 1970-01-05T04:00:00Z, but the node cannot be taken out yet: the host carries servers of other projects";
    assert_eq!(entry.event, want);
    let free = Node { lessee: None, ..ended(State::Active) };
    assert!(end_held(&free, why, at(101)).event.ends_with(why));
}
