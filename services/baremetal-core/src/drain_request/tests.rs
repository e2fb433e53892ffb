use super::*;
use crate::{Driver, NodeUuid};

const OURS: DrainOwner = DrainOwner::Request;
const THEIRS: DrainOwner = DrainOwner::Operator;

fn leaving(then: AfterDrain, stage: DrainStage) -> DrainRequest {
    DrainRequest {
        host: "h1".to_owned(),
        then,
        forced: Vec::new(),
        asked_by: Some("ann".to_owned()),
        asked_at: Timestamp::UNIX_EPOCH,
        stage,
    }
}

fn node(leaving: Option<DrainRequest>) -> Node {
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
fn check(then: AfterDrain, stage: DrainStage, want: [&str; 9]) {
    let got = all_seen().map(|seen| match plan_leaving(&leaving(then, stage), &seen) {
        DrainStep::Enter(DrainStage::Asking(OURS)) => "ask",
        DrainStep::Enter(DrainStage::Asking(THEIRS)) => "ask besides",
        DrainStep::Enter(DrainStage::Waiting(_)) => "await",
        DrainStep::Enter(DrainStage::Wanted | DrainStage::Ending) => "back",
        DrainStep::Proceed => "go",
        DrainStep::Wait(None) => "wait",
        DrainStep::Wait(Some(_)) => "tell",
        DrainStep::Refuse(_, DrainFate::EndDrain) => "end",
        DrainStep::Refuse(_, DrainFate::LeaveDrain) => "stay",
        DrainStep::Over => "over",
    });
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
fn a_new_request_replaces_the_waiting_one_and_keeps_its_drain() {
    let request = |then| NewDrainRequest {
        host: "h1".to_owned(),
        then,
        forced: vec!["blue".to_owned()],
        by: None,
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
fn a_lessee_does_not_see_whose_servers_a_host_carries() {
    let mut lent = node(Some(leaving(off(), DrainStage::Wanted)));
    lent.lessee = Some("lab".to_owned());
    let why = "cluster blue needs it";
    let told = drain_refused(&lent, why, DrainFate::EndDrain, Timestamp::UNIX_EPOCH).1.event;
    assert!(!told.contains("blue") && told.contains("servers of other projects"), "{told}");
}

#[test]
fn the_reason_for_waiting_is_recorded_once() {
    let before = node(Some(leaving(off(), DrainStage::Waiting(OURS))));
    let (told, _) = drain_stuck(&before, "silent", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(drain_stuck(&told, "silent still", Timestamp::UNIX_EPOCH), None);
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
