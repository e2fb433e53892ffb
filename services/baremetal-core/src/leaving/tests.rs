use super::*;
use crate::{Driver, NodeUuid};

const OURS: DrainOwner = DrainOwner::Request;
const THEIRS: DrainOwner = DrainOwner::Operator;

fn leaving(then: AfterDrain, stage: LeavingStage) -> Leaving {
    Leaving {
        host: "h1".to_owned(),
        then,
        forced: Vec::new(),
        asked_by: Some("ann".to_owned()),
        asked_at: Timestamp::UNIX_EPOCH,
        stage,
    }
}

fn node(leaving: Option<Leaving>) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
    node.provision_state = State::Active;
    node.leaving = leaving;
    node
}

fn off() -> AfterDrain {
    AfterDrain::Power { change: PowerChange::ForceOff, timeout: Duration::from_secs(60) }
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

/// Asserts the step for each answer of clusterd, in the order of `all_seen`.
#[track_caller]
fn check(then: AfterDrain, stage: LeavingStage, want: [&str; 9]) {
    let got = all_seen().map(|seen| match plan_leaving(&leaving(then, stage), &seen) {
        LeavingStep::Enter(LeavingStage::Asking(OURS)) => "ask",
        LeavingStep::Enter(LeavingStage::Asking(THEIRS)) => "ask besides",
        LeavingStep::Enter(LeavingStage::Waiting(_)) => "await",
        LeavingStep::Enter(LeavingStage::Wanted | LeavingStage::Ending) => "back",
        LeavingStep::Proceed => "go",
        LeavingStep::Wait(None) => "wait",
        LeavingStep::Wait(Some(_)) => "tell",
        LeavingStep::Refuse(_, LeavingEnd::EndDrain) => "end",
        LeavingStep::Refuse(_, LeavingEnd::LeaveDrain) => "stay",
        LeavingStep::Over => "over",
    });
    assert_eq!(got, want, "{then:?} {stage:?}");
}

#[test]
#[rustfmt::skip]
fn each_answer_of_clusterd_leads_to_one_step() {
    use LeavingStage::{Asking, Ending, Waiting, Wanted};
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
fn a_new_request_replaces_the_waiting_one_and_keeps_its_drain() {
    let request = |then| LeaveRequest {
        host: "h1".to_owned(),
        then,
        forced: vec!["blue".to_owned()],
        by: None,
    };
    let now = Timestamp::UNIX_EPOCH;
    let (asked, entry) = leave(&node(None), request(AfterDrain::Undeploy), now);
    assert_eq!(entry.event, "\"deleted\" requested; draining host h1 first");
    assert_eq!(asked.provision_state, State::Active);
    assert_eq!(asked.leads_to(), Some(State::Available));
    let stage = |before: LeavingStage| {
        let before = node(Some(leaving(off(), before)));
        leave(&before, request(AfterDrain::Rebuild), now).0.leaving.unwrap().stage
    };
    assert_eq!(stage(LeavingStage::Wanted), LeavingStage::Wanted);
    assert_eq!(stage(LeavingStage::Waiting(OURS)), LeavingStage::Asking(OURS));
    assert_eq!(stage(LeavingStage::Waiting(THEIRS)), LeavingStage::Asking(THEIRS));
    assert_eq!(stage(LeavingStage::Ending), LeavingStage::Wanted);
}

#[test]
fn a_refused_request_ends_the_drain_that_it_began() {
    let before = node(Some(leaving(off(), LeavingStage::Waiting(OURS))));
    assert_eq!(before.target_power_state(), Some(PowerState::Off));
    let stayed = |end| stays(&before, "cluster blue needs it", end, Timestamp::UNIX_EPOCH);
    let (after, entry) = stayed(LeavingEnd::EndDrain);
    assert_eq!(after.leaving.as_ref().map(|it| it.stage), Some(LeavingStage::Ending));
    assert_eq!(after.target_power_state(), None);
    assert!(entry.event.contains("\"power off\" was not carried out on host h1: cluster blue"));
    let (after, _) = stayed(LeavingEnd::LeaveDrain);
    assert_eq!(after.leaving, None);
}

#[test]
fn a_lessee_does_not_see_whose_servers_a_host_carries() {
    let mut lent = node(Some(leaving(off(), LeavingStage::Wanted)));
    lent.lessee = Some("lab".to_owned());
    let why = "cluster blue needs it";
    let told = stays(&lent, why, LeavingEnd::EndDrain, Timestamp::UNIX_EPOCH).1.event;
    assert!(!told.contains("blue") && told.contains("servers of other projects"), "{told}");
}

#[test]
fn the_reason_for_waiting_is_recorded_once() {
    let before = node(Some(leaving(off(), LeavingStage::Waiting(OURS))));
    let (told, _) = held(&before, "silent", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(held(&told, "silent still", Timestamp::UNIX_EPOCH), None);
}

#[test]
fn ending_maintenance_keeps_a_drain_that_a_request_waits_for() {
    let back = |node: &Node| come_back(node, "h1", None, Timestamp::UNIX_EPOCH).leaving.unwrap();
    let waiting = node(Some(leaving(off(), LeavingStage::Waiting(OURS))));
    assert_eq!(Some(back(&waiting)), waiting.leaving);
    assert_eq!(back(&node(None)).stage, LeavingStage::Ending);
    let maintained = leaving(AfterDrain::Maintenance, LeavingStage::Asking(OURS));
    assert_eq!(back(&node(Some(maintained))).stage, LeavingStage::Ending);
}
