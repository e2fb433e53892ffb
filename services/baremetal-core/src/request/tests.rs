use jiff::SignedDuration;

use super::*;
use crate::drain_request::tests::{OURS, THEIRS, leaving, off};
use crate::lending::tests::{at, gone, lent};
use crate::{AfterDrain, BiosInterface, DrainStage, Driver, FirmwareInterface, NodeUuid};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

const CHANGES: [PowerChange; 5] = [
    PowerChange::On,
    PowerChange::ForceOff,
    PowerChange::SoftOff,
    PowerChange::ForceRestart,
    PowerChange::SoftRestart,
];

fn node(state: State) -> Node {
    Node { provision_state: state, ..Node::new(NodeUuid::nil(), Driver::Redfish, T0) }
}

fn asked(node: &Node, verb: Verb) -> Node {
    request_verb(node, verb, WorkUuid::nil(), at(1)).unwrap().0
}

#[test]
fn manage_verifies_a_new_node_and_begins_no_work_on_a_free_one() {
    let new = asked(&node(State::Enroll), Verb::Manage);
    assert_eq!(new.provision_state, State::Verifying);
    assert_eq!(new.target_provision_state, Some(State::Manageable));
    assert_eq!(new.work.unwrap().tasks, [Task::TryBmc, Task::ReadBios]);
    let mut plain = node(State::Enroll);
    plain.interfaces.bios = Some(BiosInterface::NoBios);
    let reads_versions = [Task::TryBmc, Task::ReadBios];
    assert_eq!(asked(&plain, Verb::Manage).work.unwrap().tasks, reads_versions, "of the firmware");
    plain.interfaces.firmware = Some(FirmwareInterface::NoFirmware);
    assert_eq!(asked(&plain, Verb::Manage).work.unwrap().tasks, [Task::TryBmc]);
    let taken_back = asked(&node(State::Available), Verb::Manage);
    assert_eq!(taken_back.provision_state, State::Manageable);
    assert_eq!((taken_back.target_provision_state, taken_back.work), (None, None));
}

#[test]
fn only_an_inspection_replaces_the_times_of_the_last_one() {
    let before = Node {
        inspection_started_at: Some(T0),
        inspection_finished_at: Some(T0 + SignedDuration::from_secs(9)),
        ..node(State::Manageable)
    };
    let times = |node: &Node| (node.inspection_started_at, node.inspection_finished_at);
    assert_eq!(times(&asked(&before, Verb::Inspect)), (Some(at(1)), None));
    for verb in [Verb::Provide, Verb::Clean, Verb::Adopt] {
        assert_eq!(times(&asked(&before, verb)), times(&before), "{verb:?}");
    }
}

#[test]
fn an_inspection_has_a_start_while_it_runs_and_an_end_once_it_succeeded() {
    let inspecting = asked(&node(State::Manageable), Verb::Inspect);
    let done = finish_work(&inspecting, WorkUuid::nil(), at(7)).unwrap().0;
    assert_eq!((done.inspection_started_at, done.inspection_finished_at), (None, Some(at(7))));
    let failure = Failure::new(Reason::BmcUnreachable, "no answer");
    let failed = fail_work(&inspecting, failure, at(8)).unwrap().0;
    assert_eq!((failed.inspection_started_at, failed.inspection_finished_at), (None, None));
}

#[test]
fn a_node_that_must_stay_on_can_only_be_powered_on() {
    let stays_on = Node { disable_power_off: true, ..node(State::Active) };
    for change in CHANGES {
        let refused = request_power(&stays_on, change, at(1)).err();
        let want = RequestRefused::PowerOffDisabled { node: stays_on.label() };
        assert_eq!(refused, (change != PowerChange::On).then_some(want), "{change:?}");
        assert!(request_power(&node(State::Active), change, at(1)).is_ok(), "{change:?}");
    }
}

#[test]
fn a_change_of_power_waits_for_no_drain_that_another_request_needs() {
    for then in [AfterDrain::Undeploy, AfterDrain::Rebuild] {
        let waiting = leaving(then, DrainStage::Waiting(OURS));
        let node = Node { leaving: Some(waiting), ..node(State::Active) };
        for change in CHANGES {
            let refused = request_power(&node, change, at(1)).unwrap_err();
            assert!(matches!(refused, RequestRefused::Leaving { verb: "power", .. }), "{refused}");
        }
    }
}

#[test]
fn powering_on_cancels_a_drain_that_powering_off_began() {
    use DrainStage::{Asking, Ending, Waiting, Wanted};

    let left = |then, stage, change| {
        let before = Node { leaving: Some(leaving(then, stage)), ..node(State::Active) };
        let asked = request_power(&before, change, at(1)).unwrap();
        assert_eq!(asked.power_request, Some(PowerRequest::new(change, at(1))));
        asked.leaving.map(|leaving| leaving.stage)
    };
    assert_eq!(left(off(), Wanted, PowerChange::On), None);
    for (owner, kept) in [(OURS, Some(Ending)), (THEIRS, None)] {
        assert_eq!(left(off(), Asking(owner), PowerChange::On), kept);
        assert_eq!(left(off(), Waiting(owner), PowerChange::On), kept);
    }
    // A request that needs the host drained continues without the waiting one.
    assert_eq!(left(off(), Waiting(OURS), PowerChange::ForceOff), None);
    // The end of a drain goes on, whatever was requested before.
    for then in [off(), AfterDrain::Undeploy, AfterDrain::Maintenance] {
        for change in CHANGES {
            assert_eq!(left(then, Ending, change), Some(Ending), "{then:?} {change:?}");
        }
    }
}

#[test]
fn a_verb_replaces_a_request_that_waits_and_lets_a_drain_end() {
    let left = |stage| {
        let waiting = leaving(AfterDrain::Undeploy, stage);
        let before = Node { leaving: Some(waiting), ..node(State::Active) };
        asked(&before, Verb::Rebuild).leaving.map(|leaving| leaving.stage)
    };
    assert_eq!(left(DrainStage::Ending), Some(DrainStage::Ending));
    for stage in [DrainStage::Wanted, DrainStage::Asking(OURS), DrainStage::Waiting(OURS)] {
        assert_eq!(left(stage), None, "{stage:?}");
    }
}

#[test]
fn only_a_retired_node_whose_lease_is_over_loses_its_lessee_by_cleaning() {
    let retired = |node: Node| Node { retired: Some("old".to_owned()), ..node };
    let cleaned = |node: &Node| {
        let (clean, entry) = finish_work(node, WorkUuid::nil(), at(121)).unwrap();
        (clean.provision_state, clean.lessee.is_some(), entry.event)
    };
    let done = || "done".to_owned();
    let (lent, gone) = (lent(State::Cleaning), gone(State::Cleaning));
    assert_eq!(cleaned(&lent), (State::Available, true, done()));
    assert_eq!(cleaned(&gone), (State::Available, true, done()));
    assert_eq!(cleaned(&retired(lent)), (State::Manageable, true, done()));
    let returned = "done, and returned by its lessee".to_owned();
    assert_eq!(cleaned(&retired(gone)), (State::Manageable, false, returned));
}

#[test]
fn an_abort_keeps_the_target_except_that_of_a_service_that_has_failed() {
    let aborted = |state| {
        let target_provision_state = Some(State::Active);
        let node = asked(&Node { target_provision_state, ..node(state) }, Verb::Abort);
        let reason = node.failure.map(|failure| failure.reason);
        (node.provision_state, node.target_provision_state, reason)
    };
    let failed = (State::ServiceFailed, Some(State::Active), Some(Reason::Aborted));
    assert_eq!(aborted(State::ServiceWait), failed);
    assert_eq!(aborted(State::ServiceFailed), (State::Active, None, None));
}

#[test]
fn without_automated_cleaning_only_a_node_whose_lease_is_over_is_cleaned() {
    let is_cleaned = |node: Node| {
        let node = Node { automated_clean: Some(false), ..node };
        let (cleaning, _) = finish_work(&node, WorkUuid::nil(), at(121)).unwrap();
        !cleaning.work.unwrap().tasks.is_empty()
    };
    assert!(!is_cleaned(node(State::Deleting)));
    assert!(!is_cleaned(lent(State::Deleting)));
    assert!(is_cleaned(gone(State::Deleting)));
}

#[test]
fn work_without_the_ramdisk_only_plans_its_steps() {
    let request = VerbRequest { disables_ramdisk: true, ..Verb::Clean.into() };
    let asked = request_verb(&node(State::Manageable), request, WorkUuid::nil(), at(1)).unwrap().0;
    let work = asked.work.unwrap();
    assert_eq!((work.disables_ramdisk, &work.tasks[..]), (true, &[Task::PlanSteps][..]));
}
