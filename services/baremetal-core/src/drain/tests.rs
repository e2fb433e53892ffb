use super::*;
use crate::drain_request::tests::{OURS, THEIRS, leaving, off};
use crate::{Driver, NodeUuid};

fn node(leaving: Option<DrainRequest>) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
    node.provision_state = State::Active;
    node.leaving = leaving;
    node
}

#[test]
fn a_new_request_replaces_the_waiting_one_and_keeps_its_drain() {
    let request = |then| NewDrainRequest {
        steps: None,
        disables_ramdisk: false,
        host: "h1".to_owned(),
        then,
        forced: vec!["blue".to_owned()],
        by: None,
        project: None,
    };
    let now = Timestamp::UNIX_EPOCH;
    let (asked, entry) = wait_for_drain(&node(None), request(AfterDrain::Undeploy), now);
    assert_eq!(entry.event, "\"deleted\" requested; draining host h1 first");
    assert_eq!(asked.provision_state, State::Active);
    assert_eq!(asked.leads_to(), Some(State::Available));
    let stage = |before: DrainStage| {
        let before = node(Some(leaving(off(), before)));
        wait_for_drain(&before, request(AfterDrain::Rebuild), now).0.leaving.unwrap().stage
    };
    assert_eq!(stage(DrainStage::Wanted), DrainStage::Wanted);
    assert_eq!(stage(DrainStage::Waiting(OURS)), DrainStage::Asking(OURS));
    assert_eq!(stage(DrainStage::Waiting(THEIRS)), DrainStage::Asking(THEIRS));
    assert_eq!(stage(DrainStage::Ending), DrainStage::Wanted);
    let failed = Node { failure: Some(Failure::new(Reason::DrainRefused, "no")), ..node(None) };
    let (again, _) = wait_for_drain(&failed, request(AfterDrain::Undeploy), now);
    assert_eq!(again.failure, None);
}

#[test]
fn a_refused_request_ends_the_drain_that_it_began() {
    let before = node(Some(leaving(off(), DrainStage::Waiting(OURS))));
    assert_eq!(before.target_power_state(), Some(PowerState::Off));
    let stayed = |end| drain_refused(&before, "cluster blue needs it", end, Timestamp::UNIX_EPOCH);
    let (after, entry) = stayed(DrainFate::EndDrain);
    assert_eq!(after.leaving.as_ref().map(|it| it.stage), Some(DrainStage::Ending));
    assert_eq!(after.target_power_state(), None);
    assert!(entry.event.contains("\"power off\" was not carried out on host h1: cluster blue"));
    let (after, _) = stayed(DrainFate::LeaveDrain);
    assert_eq!(after.leaving, None);
}

#[test]
fn a_rescue_that_is_refused_or_replaced_leaves_no_password() {
    let now = Timestamp::UNIX_EPOCH;
    let mut before = node(Some(leaving(AfterDrain::Rescue, DrainStage::Waiting(OURS))));
    before.set_rescue_password("$6$salt$hash");
    let (refused, _) = drain_refused(&before, "no", DrainFate::EndDrain, now);
    assert!(refused.instance_info.is_empty());
    let replaced = |then| {
        let (host, forced) = ("h1".to_owned(), Vec::new());
        let (steps, disables_ramdisk, by, project) = (None, false, None, None);
        let request = NewDrainRequest { host, then, steps, disables_ramdisk, forced, by, project };
        wait_for_drain(&before, request, now).0.instance_info.is_empty()
    };
    assert!(replaced(AfterDrain::Service));
    assert!(!replaced(AfterDrain::Rescue));
}

#[test]
fn a_lessee_does_not_see_whose_servers_a_host_carries() {
    let mut lent = node(Some(leaving(off(), DrainStage::Wanted)));
    lent.lessee = Some("lab".to_owned());
    let why = "cluster blue needs it";
    let reported = drain_refused(&lent, why, DrainFate::EndDrain, Timestamp::UNIX_EPOCH).1.event;
    assert!(
        !reported.contains("blue") && reported.contains("servers of other projects"),
        "{reported}"
    );
}

#[test]
fn the_reason_for_waiting_is_recorded_once() {
    let before = node(Some(leaving(off(), DrainStage::Waiting(OURS))));
    let (reported, _) = drain_stuck(&before, "silent", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(drain_stuck(&reported, "silent still", Timestamp::UNIX_EPOCH), None);
}

#[test]
fn the_reason_for_waiting_says_what_waits() {
    let cause = |stage| {
        let before = node(Some(leaving(off(), stage)));
        drain_stuck(&before, "silent", Timestamp::UNIX_EPOCH).unwrap().0.failure.unwrap().cause
    };
    let waits = "\"power off\" waits for the drain of host h1: silent";
    assert_eq!(cause(DrainStage::Wanted), waits);
    assert_eq!(cause(DrainStage::Waiting(OURS)), waits);
    let ends = "host h1 takes no servers because its drain has not ended: silent";
    assert_eq!(cause(DrainStage::Ending), ends);
}

#[test]
fn ending_maintenance_keeps_a_drain_that_a_request_waits_for() {
    let back = |node: &Node| {
        end_maintenance_drain(node, "h1", None, Timestamp::UNIX_EPOCH).leaving.unwrap()
    };
    let waiting = node(Some(leaving(off(), DrainStage::Waiting(OURS))));
    assert_eq!(Some(back(&waiting)), waiting.leaving);
    assert_eq!(back(&node(None)).stage, DrainStage::Ending);
    let maintained = leaving(AfterDrain::Maintenance, DrainStage::Asking(OURS));
    assert_eq!(back(&node(Some(maintained))).stage, DrainStage::Ending);
}
