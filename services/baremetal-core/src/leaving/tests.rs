use super::*;
use crate::drain_request::tests::{OURS, THEIRS, leaving, off};
use crate::{Driver, Failure, NodeUuid, State};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

/// A node in use whose request waits for the drain of its host.
fn node(then: AfterDrain, stage: DrainStage) -> Node {
    let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    Node { provision_state: State::Active, leaving: Some(leaving(then, stage)), ..node }
}

fn all_seen() -> [DrainSeen; 9] {
    [
        DrainSeen::NoHost,
        DrainSeen::NotDrained,
        DrainSeen::Draining(2),
        DrainSeen::Drained,
        DrainSeen::Stuck(1, None),
        DrainSeen::Stuck(1, Some("quorum".to_owned())),
        DrainSeen::Ending,
        DrainSeen::Refused("quorum".to_owned()),
        DrainSeen::Unknown("silent".to_owned()),
    ]
}

fn rules() -> LeavingRules {
    LeavingRules { poll_every: Duration::from_secs(1), new_work: WorkUuid::nil() }
}

/// Returns one word for what is written.
fn word(decision: &Decision<NodeUpdate>) -> &'static str {
    let waits = decision.next_turn == Requeue::After(rules().poll_every);
    let Some(NodeUpdate { node, .. }) = &decision.change else {
        assert!(waits);
        return "wait";
    };
    let reason = node.failure.as_ref().map(|failure| failure.reason);
    match (node.leaving.as_ref().map(|leaving| leaving.stage), reason) {
        (_, Some(Reason::DrainWaits)) if waits => "tell",
        (None, Some(Reason::DrainRefused)) => "stay",
        (Some(DrainStage::Ending), Some(Reason::DrainRefused)) => "end",
        (Some(DrainStage::Asking(OURS)), None) => "ask",
        (Some(DrainStage::Asking(THEIRS)), None) => "ask besides",
        (Some(DrainStage::Waiting(_)), None) => "await",
        (None, None) if node.work.is_some() || node.power_request.is_some() => "go",
        (None, None) => "over",
        (stage, reason) => panic!("{stage:?} {reason:?}"),
    }
}

/// Asserts the decision for each answer of clusterd, in the order of `all_seen`.
#[track_caller]
fn check(then: AfterDrain, stage: DrainStage, want: [&str; 9]) {
    let node = node(then, stage);
    let got = all_seen().map(|seen| word(&after_leaving_call(&node, &seen, &rules(), T0)));
    assert_eq!(got, want, "{then:?} {stage:?}");
}

#[test]
#[rustfmt::skip]
fn each_answer_of_clusterd_leads_to_one_step() {
    use DrainStage::{Asking, Ending, Waiting, Wanted};
    //                                     no host  no drain  draining       drained        stuck          stuck:quorum   ending   refused unknown
    for then in [AfterDrain::Undeploy, AfterDrain::Rebuild, off()] {
        check(then, Wanted,          ["go",   "ask",  "ask besides", "ask besides", "ask besides", "ask besides", "ask",   "stay", "tell"]);
        check(then, Asking(OURS),    ["go",   "wait", "await",       "await",       "await",       "await",       "await", "stay", "tell"]);
        check(then, Waiting(OURS),   ["go",   "stay", "wait",        "go",          "tell",        "end",         "stay",  "stay", "tell"]);
        check(then, Waiting(THEIRS), ["go",   "stay", "wait",        "go",          "tell",        "stay",        "stay",  "stay", "tell"]);
        check(then, Ending,          ["over", "over", "over",        "over",        "over",        "over",        "over",  "over", "tell"]);
    }
    let then = AfterDrain::Maintenance;
    check(then, Wanted,              ["over", "ask",  "ask besides", "ask besides", "ask besides", "ask besides", "ask",   "stay", "tell"]);
    check(then, Asking(OURS),        ["over", "wait", "over",        "over",        "over",        "over",        "over",  "stay", "tell"]);
    check(then, Ending,              ["over", "over", "over",        "over",        "over",        "over",        "over",  "over", "tell"]);
}

#[test]
fn each_stage_has_one_call_to_clusterd() {
    let call = |stage| plan_leaving(&leaving(AfterDrain::Undeploy, stage)).actions;
    let host = || "h1".to_owned();
    assert_eq!(call(DrainStage::Wanted), [ClusterdCall::Show { host: host() }]);
    assert_eq!(call(DrainStage::Waiting(OURS)), [ClusterdCall::Show { host: host() }]);
    let drain = ClusterdCall::Drain { host: host(), forced: Vec::new() };
    assert_eq!(call(DrainStage::Asking(OURS)), [drain]);
    assert_eq!(call(DrainStage::Ending), [ClusterdCall::Undrain { host: host() }]);
}

#[test]
fn an_obstacle_to_a_drain_is_recorded_once() {
    let waiting = node(AfterDrain::Undeploy, DrainStage::Waiting(OURS));
    let unknown = DrainSeen::Unknown("silent".to_owned());
    let reported = after_leaving_call(&waiting, &unknown, &rules(), T0).change.unwrap();
    assert_eq!(reported.history.len(), 1);
    assert_eq!(word(&after_leaving_call(&reported.node, &unknown, &rules(), T0)), "wait");
    // The reason goes when the drain has made progress.
    assert_eq!(word(&after_leaving_call(&reported.node, &DrainSeen::Drained, &rules(), T0)), "go");
}

#[test]
fn only_the_reason_for_waiting_goes_when_the_wait_ends() {
    for (reason, kept) in [(Reason::DrainWaits, false), (Reason::StepFailed, true)] {
        let failure = Some(Failure::new(reason, "why"));
        for then in [off(), AfterDrain::Maintenance] {
            let waiting = Node { failure: failure.clone(), ..node(then, DrainStage::Ending) };
            let update = after_leaving_call(&waiting, &DrainSeen::Drained, &rules(), T0).change;
            assert_eq!(update.unwrap().node.failure.is_some(), kept, "{reason:?} {then:?}");
        }
        let waiting = Node { failure, ..node(off(), DrainStage::Waiting(OURS)) };
        let update = after_leaving_call(&waiting, &DrainSeen::Drained, &rules(), T0).change;
        assert_eq!(update.unwrap().node.failure.is_some(), kept, "{reason:?}");
    }
}

#[test]
fn a_request_that_waited_begins_now_and_for_its_caller() {
    let now = T0 + Duration::from_secs(3600);
    let after = |then, seen| {
        let waiting = node(then, DrainStage::Waiting(OURS));
        after_leaving_call(&waiting, &seen, &rules(), now)
    };
    let request = after(off(), DrainSeen::Drained).change.unwrap().node.power_request.unwrap();
    assert_eq!(request.deadline, now + Duration::from_secs(60));
    let update = after(AfterDrain::Undeploy, DrainSeen::Drained).change.unwrap();
    assert_eq!(update.history[0].user.as_deref(), Some("ann"));
    // The cloud has no such host, so the log must not say that the host is drained.
    let gone = after(AfterDrain::Maintenance, DrainSeen::NoHost);
    assert_eq!((gone.log, gone.change.unwrap().node.leaving), (Vec::new(), None));
}
