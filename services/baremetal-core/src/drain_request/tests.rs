use super::*;

pub(crate) const OURS: DrainOwner = DrainOwner::Request;
pub(crate) const THEIRS: DrainOwner = DrainOwner::Operator;

pub(crate) fn leaving(then: AfterDrain, stage: DrainStage) -> DrainRequest {
    DrainRequest {
        host: "h1".to_owned(),
        then,
        forced: Vec::new(),
        asked_by: Some("ann".to_owned()),
        asked_at: Timestamp::UNIX_EPOCH,
        stage,
    }
}

pub(crate) fn off() -> AfterDrain {
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
