//! Plans the next step of a change of the password of the BMC account.
//!
//! The wanted password is recorded before the BMC is asked for it. From then on, both passwords are tried, the wanted one first, and the one
//! that the BMC accepts is kept.

use decision::{Decision, Requeue};

use super::action::Action;
use super::seen::{Observed, PasswordSeen};
use super::turn::{MachineTurn, Planned};
use crate::{
    AccountPassword, Failure, HistoryEntry, Node, NodeUpdate, PasswordRotation, Problem, Reason,
    RotationStage, elapsed,
};

/// How often the BMC is asked at most, and how often it gets the wanted password at most while it has the present one: BMCs lock an account
/// after some wrong passwords.
const MOST_TIMES: u8 = 3;

/// Decides the next step of a requested change of the password.
pub(super) fn plan_rotation(
    turn: &MachineTurn<'_>,
    rotation: &PasswordRotation,
    seen: &Observed,
) -> Planned {
    let times = match rotation.stage {
        RotationStage::Requested => return Ok(Decision::act(Action::MakePassword)),
        RotationStage::Made => return ask(turn, rotation, 1),
        RotationStage::Unknown => return Ok(Decision::rest(Requeue::OnChange)),
        RotationStage::Asked { times } => times,
    };
    match &seen.password {
        PasswordSeen::Is(AccountPassword::Wanted) => done(turn),
        PasswordSeen::Is(AccountPassword::Present) if times < MOST_TIMES => {
            ask(turn, rotation, times + 1)
        }
        PasswordSeen::Is(AccountPassword::Present) => {
            let cause = format!(
                "the BMC was asked {times} times for a new password, and still has the old one"
            );
            keep_present(turn, Failure::new(Reason::BmcFailed, cause))
        }
        PasswordSeen::Neither => {
            let cause = "the BMC accepts neither the old nor the new password of its account; both are kept";
            unknown(turn, Failure::new(Reason::BmcRefusesUs, cause))
        }
        PasswordSeen::Failed(problem) if problem.transient && !is_late(turn, rotation, seen) => {
            turn.look_again()
        }
        PasswordSeen::Failed(problem) => {
            let cause = format!(
                "it is not known whether the BMC has the old or the new password of its account: {}",
                problem.cause
            );
            unknown(turn, Failure::new(problem.reason, cause))
        }
        PasswordSeen::NotSeen => turn.look_again(),
    }
}

fn is_late(turn: &MachineTurn<'_>, rotation: &PasswordRotation, seen: &Observed) -> bool {
    elapsed(rotation.since.max(seen.watching_since), turn.now) > turn.rules.timeouts.bmc
}

/// Records that the BMC is asked, and asks.
fn ask(turn: &MachineTurn<'_>, rotation: &PasswordRotation, times: u8) -> Planned {
    let stage = RotationStage::Asked { times };
    turn.intend(in_stage(turn.node, rotation, stage), Action::ChangePassword)
}

fn in_stage(node: &Node, rotation: &PasswordRotation, stage: RotationStage) -> Node {
    let rotation = PasswordRotation { stage, ..rotation.clone() };
    Node { password_rotation: Some(rotation), ..node.clone() }
}

/// Makes the wanted password the present one: the BMC has it.
fn done(turn: &MachineTurn<'_>) -> Planned {
    let after = turn.node.with_account_password(AccountPassword::Wanted);
    let event = "the password of the BMC account was changed".to_owned();
    let entry = HistoryEntry::changed(turn.node, &after, event, turn.now);
    Ok(NodeUpdate::decided(after, [entry]))
}

/// Ends the change: the BMC has the present password.
fn keep_present<A>(turn: &MachineTurn<'_>, failure: Failure) -> Planned<A> {
    turn.give_up_password(turn.node.with_account_password(AccountPassword::Present), failure)
}

/// Keeps both passwords, and tries neither again by itself.
fn unknown(turn: &MachineTurn<'_>, failure: Failure) -> Planned {
    let Some(rotation) = &turn.node.password_rotation else { return turn.look_again() };
    turn.give_up_password(in_stage(turn.node, rotation, RotationStage::Unknown), failure)
}

/// Looks which password the BMC has. A BMC that kept the present password after an earlier request gets time to apply the change.
pub(super) fn password_asked<A>(turn: &MachineTurn<'_>) -> Planned<A> {
    let stage = turn.node.password_rotation.as_ref().map(|rotation| rotation.stage);
    Ok(Decision::rest(match stage {
        Some(RotationStage::Asked { times }) if times > 1 => {
            Requeue::After(turn.rules.timeouts.ask_again)
        }
        Some(_) | None => Requeue::Now,
    }))
}

/// Decides what follows from a refusal: the BMC surely has the present password. A busy BMC is asked again.
pub(super) fn password_refused<A>(
    turn: &MachineTurn<'_>,
    problem: &Problem,
    is_final: bool,
) -> Planned<A> {
    match &turn.node.password_rotation {
        Some(rotation) if !is_final => {
            turn.write_and_look_again(in_stage(turn.node, rotation, RotationStage::Made))
        }
        Some(_) | None => {
            let cause = format!("the password of the BMC account stays: {}", problem.cause);
            keep_present(turn, Failure::new(problem.reason, cause))
        }
    }
}
