//! Changes of the password of the BMC account.

use serde_json::json;

use super::*;
use crate::{AccountPassword, RotationStage, request_password_rotation};

use AccountPassword::{Present, Wanted};
use RotationStage::{Asked, Made, Requested, Unknown};

fn requested() -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    let info = json!({"redfish_username": "root", "redfish_password": "old"});
    node.driver_info = info.as_object().unwrap().clone();
    request_password_rotation(&node, T0).unwrap().0
}

fn in_stage(stage: RotationStage) -> Node {
    let mut node = requested().with_made_password("new".to_owned());
    node.password_rotation.as_mut().unwrap().stage = stage;
    node
}

fn sees(password: PasswordSeen) -> Observed {
    Observed { password, ..seen() }
}

/// The stage and the password of `driver_info` after a decision that writes the node.
#[track_caller]
fn written<A>(decision: Decision<NodeUpdate, A>) -> (Option<RotationStage>, String) {
    let node = decision.change.expect("a change").node;
    let password = node.driver_info["redfish_password"].as_str().unwrap().to_owned();
    (node.password_rotation.map(|rotation| rotation.stage), password)
}

#[test]
fn the_password_is_recorded_before_the_bmc_is_asked() {
    check(&requested(), seen(), 0, expect!["Act(MakePassword)"]);
    let made = Box::new(in_stage(Made));
    let made = concluded(&requested(), &ActionOutcome::PasswordMade(made), T0);
    assert_eq!((made.next_turn, written(made)), (Requeue::Now, (Some(Made), "old".to_owned())));
    let asks = planned(&in_stage(Made), &seen(), T0);
    assert_eq!(asks.actions, [Action::ChangePassword]);
    assert_eq!(written(asks), (Some(Asked { times: 1 }), "old".to_owned()));
    let asked = concluded(&in_stage(Asked { times: 1 }), &ActionOutcome::PasswordAsked, T0);
    assert_eq!((asked.change, asked.next_turn), (None, Requeue::Now));
}

#[test]
fn the_password_that_the_bmc_accepts_is_kept() {
    let asked = in_stage(Asked { times: 1 });
    let new = planned(&asked, &sees(PasswordSeen::Is(Wanted)), T0);
    let event = new.change.as_ref().unwrap().history[0].event.clone();
    assert_eq!(event, "the password of the BMC account was changed");
    assert_eq!(written(new), (None, "new".to_owned()));

    let old = planned(&asked, &sees(PasswordSeen::Is(Present)), T0);
    assert_eq!(old.actions, [Action::ChangePassword], "it is asked again");
    assert_eq!(written(old), (Some(Asked { times: 2 }), "old".to_owned()));
    let again = concluded(&in_stage(Asked { times: 2 }), &ActionOutcome::PasswordAsked, T0);
    assert_eq!(again.next_turn, Requeue::After(timeouts().ask_again));
    let last = in_stage(Asked { times: 3 });
    let old = || sees(PasswordSeen::Is(Present));
    check(
        &last,
        old(),
        0,
        expect![
            "GiveUp(BmcFailed: the BMC was asked 3 times for a new password, and still has the old one)"
        ],
    );
    assert_eq!(written(planned(&last, &old(), T0)), (None, "old".to_owned()));
}

#[test]
fn both_passwords_are_kept_if_the_bmc_accepts_neither() {
    let asked = in_stage(Asked { times: 1 });
    let neither = || sees(PasswordSeen::Neither);
    check(
        &asked,
        neither(),
        0,
        expect![
            "GiveUp(BmcRefusesUs: the BMC accepts neither the old nor the new password of its account; both are kept)"
        ],
    );
    let unknown = planned(&asked, &neither(), T0);
    assert_eq!(unknown.next_turn, Requeue::OnChange);
    assert_eq!(written(unknown), (Some(Unknown), "old".to_owned()));
    check(&in_stage(Unknown), neither(), 0, expect!["Rest"]);
}

#[test]
fn a_bmc_that_does_not_answer_is_tried_until_the_timeout() {
    let asked = in_stage(Asked { times: 1 });
    let failed = |transient| sees(PasswordSeen::Failed(problem(transient)));
    check(&asked, failed(true), 60, expect!["Wait(1 s)"]);
    check(
        &asked,
        failed(true),
        61,
        expect![
            "GiveUp(BmcUnreachable: it is not known whether the BMC has the old or the new password of its account: cannot reach the BMC)"
        ],
    );
    let unknown = planned(&asked, &failed(false), T0);
    assert_eq!(written(unknown), (Some(Unknown), "old".to_owned()));
}

#[test]
fn a_refusal_leaves_the_present_password_and_a_busy_bmc_is_asked_again() {
    let asked = in_stage(Asked { times: 1 });
    let refused = |transient, after_secs| {
        let now = T0 + jiff::SignedDuration::from_secs(after_secs);
        concluded(&asked, &ActionOutcome::PasswordRefused(problem(transient)), now)
    };
    let busy = refused(true, 60);
    assert_eq!(busy.next_turn, Requeue::After(Duration::from_secs(1)));
    assert_eq!(written(busy), (Some(Made), "old".to_owned()));
    for last in [refused(false, 0), refused(true, 61)] {
        let want =
            "GiveUp(BmcUnreachable: the password of the BMC account stays: cannot reach the BMC)";
        assert_eq!(text(&asked, &last), want);
        assert_eq!(written(last), (None, "old".to_owned()));
    }
}

#[test]
fn a_problem_before_the_bmc_is_asked_ends_the_change() {
    for node in [requested(), in_stage(Asked { times: 1 })] {
        let failed = concluded(&node, &ActionOutcome::Failed(problem(false)), T0);
        assert_eq!(written(failed), (None, "old".to_owned()));
        let busy = concluded(&node, &ActionOutcome::Failed(problem(true)), T0);
        assert_eq!((busy.change, busy.next_turn), (None, Requeue::After(Duration::from_secs(1))));
    }
    assert_eq!(requested().password_rotation.unwrap().stage, Requested);
}
