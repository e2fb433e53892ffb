use hardware::{PowerChange, PowerState};
use jiff::SignedDuration;

use super::*;
use crate::{
    DrainStage, Driver, NodeUuid, RequestRefused, State, Verb, WantedSteps, WorkUuid, finish_work,
    request_power, request_verb,
};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

/// The moment `hours` hours after the epoch.
pub(crate) fn at(hours: i64) -> Timestamp {
    T0 + SignedDuration::from_hours(hours)
}

fn hours(hours: u64) -> Length {
    Length::from_secs(hours * 3600).unwrap()
}

/// A warning 24 h before the end, 12 h notice, an undo window of 20 h.
pub(crate) fn schedule() -> LeaseSchedule {
    let raw = r#"{"warn_before": ["24h"], "notice": "12h", "undo_window": "20h"}"#;
    serde_json::from_str::<LeaseSchedule>(raw).unwrap().without_snapshot()
}

pub(crate) fn node(state: State) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    node.provision_state = state;
    node.power_state = Some(PowerState::On);
    node
}

fn loan(length: u64) -> LendRequest {
    LendRequest { lessee: "lab".to_owned(), length: hours(length), notify: None }
}

/// A node with a lease of 100 h.
pub(crate) fn lent(state: State) -> Node {
    lend(&node(state), loan(100), "root", Terms::default(), T0).unwrap().0
}

pub(crate) fn take(node: &Node, step: lease::LeaseStage, hour: i64) -> Node {
    with_stage_taken(node, step, at(hour)).0
}

pub(crate) fn ended(state: State) -> Node {
    let warned = take(&lent(state), lease::LeaseStage::Warn { ends_at: at(100) }, 76);
    take(&warned, lease::LeaseStage::SwitchOff { deleted_at: at(120) }, 100)
}

pub(crate) fn gone(state: State) -> Node {
    let warned =
        take(&ended(state), lease::LeaseStage::WarnOfDeletion { deleted_at: at(120) }, 110);
    take(&warned, lease::LeaseStage::Delete, 120)
}

#[test]
fn a_node_whose_lease_ended_is_neither_powered_on_nor_installed() {
    let ended = ended(State::Active);
    let refused = request_power(&ended, PowerChange::On, at(101)).unwrap_err();
    assert!(matches!(refused, RequestRefused::LeaseEnded { .. }), "{refused}");
    assert!(request_power(&ended, PowerChange::ForceRestart, at(101)).is_err());
    assert!(request_power(&ended, PowerChange::ForceOff, at(101)).is_ok());
    for verb in [Verb::Rebuild, Verb::Service, Verb::Rescue] {
        let refused = request_verb(&ended, verb, WorkUuid::nil(), at(101)).unwrap_err();
        assert!(matches!(refused, RequestRefused::LeaseEnded { .. }), "{refused}");
    }
    assert!(request_verb(&ended, Verb::Undeploy, WorkUuid::nil(), at(101)).is_ok());
    let (again, _) = undo(&ended, "ann", &schedule(), Terms::default(), at(101)).unwrap();
    assert!(request_power(&again, PowerChange::On, at(101)).is_ok());
}

#[test]
fn a_returned_node_is_erased_even_without_automated_cleaning() {
    let unclean = Node { automated_clean: Some(false), ..gone(State::Active) };
    let (deleting, _) = request_verb(&unclean, Verb::Undeploy, WorkUuid::nil(), at(120)).unwrap();
    let (cleaning, _) = finish_work(&deleting, WorkUuid::nil(), at(120)).unwrap();
    assert_eq!(cleaning.work.unwrap().steps, WantedSteps::Automated { erases_disks: true });
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
    // The new term may be shorter.
    let shorter = again(&lent, "lab").unwrap();
    assert_eq!(shorter.lending.unwrap().lease.until, at(11));
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
}

#[test]
fn a_lease_for_a_reservation_ends_with_the_instance() {
    for (reserved, wanted) in [(true, RequiredState::Deleted), (false, RequiredState::AsRequested)]
    {
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
    let steps = &cleaning.work.as_ref().unwrap().steps;
    assert_eq!(*steps, WantedSteps::Automated { erases_disks: true });
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

#[test]
fn a_lease_that_goes_on_ends_the_drain_that_its_end_began() {
    for (owner, ends) in [(DrainOwner::Request, true), (DrainOwner::Operator, false)] {
        let ended = drain_noted(&ended(State::Active), "h1", owner);
        let undone = undo(&ended, "ann", &schedule(), Terms::default(), at(101)).unwrap().0;
        let extended = extend(&ended, at(200), "ann", Terms::default(), at(101)).unwrap().0;
        let lent = lend(&ended, loan(10), "ann", Terms::default(), at(101)).unwrap().0;
        for node in [undone, extended, lent] {
            assert_eq!(node.lending.unwrap().drain, None);
            let leaving = node.leaving.map(|it| (it.host, it.stage, it.asked_by));
            let want = ("h1".to_owned(), DrainStage::Ending, Some("ann".to_owned()));
            assert_eq!(leaving, ends.then_some(want), "{owner:?}");
        }
    }
}

#[test]
fn the_history_says_what_each_stage_of_the_end_does_and_when() {
    let lent = lent(State::Active);
    let event = |stage| with_stage_taken(&lent, stage, at(76)).1.event;
    let (soon, later) = (at(100), at(120));
    let warned = event(lease::LeaseStage::Warn { ends_at: soon });
    assert!(warned.starts_with(&format!("the lease ends at {soon}; ")), "{warned}");
    let off = event(lease::LeaseStage::SwitchOff { deleted_at: later });
    assert!(off.contains("is switched off") && off.contains(&later.to_string()), "{off}");
    let last = event(lease::LeaseStage::WarnOfDeletion { deleted_at: later });
    assert!(last.contains(&format!("the disks are erased at {later} unless")), "{last}");
    let gone = event(lease::LeaseStage::Delete);
    assert!(gone.contains("undeployed and its disks are erased"), "{gone}");
    assert!(event(lease::LeaseStage::Snapshot).contains("a snapshot is kept"));
}
