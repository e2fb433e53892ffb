//! A node that is lent until a time: to whom, what happens at the end, and how it is given back.

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;
use lease::{
    Due, ExtendError, Ladder, Lease, Length, MailAddress, TermError, Terms, UndoError, Wanted,
};
use serde::{Deserialize, Serialize};

use crate::{HistoryEntry, Node, State, release};

/// Until when a node is lent to its lessee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lending {
    /// How long, and what of its end was already done.
    pub lease: Lease,
    /// The user who lent it.
    pub by: String,
    /// A mail address that is told of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
    /// Whether it ends with what was installed: the node was lent for that alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
}

/// What is asked for of a node that is to be lent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The project that is to have it.
    pub lessee: String,
    /// How long, from now.
    pub length: Length,
    /// A mail address that is told of its end.
    pub notify: Option<MailAddress>,
}

/// Why a node is not lent, or not lent for longer. It is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LendError {
    /// Another project has it.
    #[error("lessee: node \"{node}\" is used by another project")]
    Taken {
        /// Which node.
        node: String,
    },
    /// It comes back from its last lessee.
    #[error("node \"{node}\" is being given back: it can be lent again once it was cleaned")]
    Returning {
        /// Which node.
        node: String,
    },
    /// It is lent to nobody, or without end.
    #[error("node \"{node}\" has no lease")]
    NotLent {
        /// Which node.
        node: String,
    },
    /// Nothing is lent for that long.
    #[error(transparent)]
    Term(#[from] TermError),
    /// It cannot be extended.
    #[error(transparent)]
    Extend(#[from] ExtendError),
    /// Its end cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// What is to be done about a node because of its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LendingStep {
    /// A rung of the ladder: it is written down, and told.
    Take(lease::Step),
    /// The machine is switched off.
    Power(PowerChange),
    /// It is taken out of use, which leads to its cleaning.
    Undeploy,
    /// It is cleaned.
    Clean,
    /// It is clean: it is nobody's but its owner's.
    Release,
    /// Nothing, until the node changes or that time.
    Wait {
        /// When to look again; never, where there is nothing to come.
        until: Option<Timestamp>,
        /// What stands against what would have to be done.
        held: Option<&'static str>,
    },
}

impl Node {
    /// How it has to be by its lease.
    pub fn wanted_by_lease(&self) -> Wanted {
        self.lending.as_ref().map_or(Wanted::AsAsked, |lending| lending.lease.wanted())
    }
}

/// What is to be done about `node` because of its lease.
///
/// While the undo window is open nothing of its disks is touched, and what was under way is never cut short. Its lessee is
/// taken away last of all, once it is clean.
pub fn plan_lending(node: &Node, ladder: &Ladder, now: Timestamp) -> LendingStep {
    let Some(Lending { lease, .. }) = &node.lending else { return wait(None, None) };
    let until = match ladder.due(lease, now) {
        Due::Now(step) => return LendingStep::Take(step),
        Due::At(at) => Some(at),
        Due::Nothing => None,
    };
    if node.provision_state.is_busy() || node.power_request.is_some() {
        return wait(until, None);
    }
    match lease.wanted() {
        Wanted::AsAsked => wait(until, None),
        Wanted::Off if node.power_state == Some(PowerState::Off) => wait(until, None),
        Wanted::Off if node.disable_power_off => wait(until, Some("it has disable_power_off set")),
        // Who does not go when asked is made to.
        Wanted::Off if node.failure.is_some() => LendingStep::Power(PowerChange::ForceOff),
        Wanted::Off => LendingStep::Power(PowerChange::SoftOff),
        Wanted::Gone => give_back(node),
    }
}

fn give_back(node: &Node) -> LendingStep {
    match node.provision_state {
        State::Active | State::DeployFailed | State::Error if node.protected.is_some() => {
            wait(None, Some("it is protected"))
        }
        State::Active | State::DeployFailed | State::Error | State::Manageable
            if node.disable_power_off =>
        {
            wait(None, Some("it has disable_power_off set"))
        }
        State::Active | State::DeployFailed | State::Error => LendingStep::Undeploy,
        State::Available => LendingStep::Release,
        State::Manageable if node.maintenance.is_some() => wait(None, Some("it is in maintenance")),
        State::Manageable if node.retired.is_some() => wait(None, Some("it is retired")),
        State::Manageable => LendingStep::Clean,
        // It was never seen to work: nobody wrote anything.
        State::Enroll => LendingStep::Release,
        State::CleanFailed | State::InspectFailed | State::AdoptFailed => {
            wait(None, Some("its last work failed: an operator has to bring it to \"manageable\""))
        }
        State::Verifying
        | State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting => wait(None, None),
    }
}

const fn wait(until: Option<Timestamp>, held: Option<&'static str>) -> LendingStep {
    LendingStep::Wait { until, held }
}

/// The node, lent at `now` by the user `by`.
///
/// Who lends it again to the same lessee sets its time anew, which may be shorter: the lessee is warned as of any end.
pub fn lend(
    node: &Node,
    loan: Loan,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    if node.lessee.as_ref().is_some_and(|lessee| *lessee != loan.lessee) {
        return Err(LendError::Taken { node: node.label() });
    }
    if node.wanted_by_lease() == Wanted::Gone {
        return Err(LendError::Returning { node: node.label() });
    }
    terms.check(loan.length)?;
    let lease = Lease::new(now, loan.length);
    let event = format!("lent to project {} until {}", loan.lessee, lease.until);
    let reserved = node.lending.as_ref().is_some_and(|lending| lending.reserved);
    let lending = Some(Lending { lease, by: by.to_owned(), notify: loan.notify, reserved });
    let lent = Node { lessee: Some(loan.lessee), lending, ..node.clone() };
    let entry = HistoryEntry::changed(node, &lent, event, now);
    Ok((lent, entry))
}

/// The node, lent until `until` at least.
pub fn extend(
    node: &Node,
    until: Timestamp,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    with_lease(node, now, |lending| Ok(lending.lease.extended(until, by, terms, now)?))
}

/// The node, with the end of its lease undone. It stays off until somebody switches it on.
pub fn undo(
    node: &Node,
    by: &str,
    ladder: &Ladder,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    with_lease(node, now, |lending| Ok(lending.lease.undone(by, ladder, terms, now)?))
}

fn with_lease(
    node: &Node,
    now: Timestamp,
    change: impl FnOnce(&Lending) -> Result<Lease, LendError>,
) -> Result<(Node, HistoryEntry), LendError> {
    let not_lent = || LendError::NotLent { node: node.label() };
    let lending = node.lending.as_ref().ok_or_else(not_lent)?;
    let lease = change(lending)?;
    let event = format!("lent until {}", lease.until);
    let lent = Node { lending: Some(Lending { lease, ..lending.clone() }), ..node.clone() };
    let entry = HistoryEntry::changed(node, &lent, event, now);
    Ok((lent, entry))
}

/// The node once `step` of its lease's end was taken, and what its history says of that.
pub fn lending_taken(node: &Node, step: lease::Step, now: Timestamp) -> (Node, HistoryEntry) {
    let mut taken = node.clone();
    if let Some(lending) = &mut taken.lending {
        lending.lease = lending.lease.taken(&step, now);
    }
    let entry = HistoryEntry::changed(node, &taken, told(step), now);
    (taken, entry)
}

/// The node's loan, which ends with what was installed, if it was for that alone.
pub(crate) fn end_with_instance(node: &mut Node, now: Timestamp) {
    if let Some(lending) = node.lending.as_mut().filter(|lending| lending.reserved) {
        lending.lease = lending.lease.taken(&lease::Step::Delete, now);
    }
}

/// The node once it was given back: it has no lessee.
pub fn given_back(node: &Node, now: Timestamp) -> (Node, HistoryEntry) {
    // What its lessee reserved and never used is over with that.
    let free = if node.allocation.is_some() { release(node) } else { node.clone() };
    let free = Node { lessee: None, lending: None, ..free };
    let entry = HistoryEntry::changed(node, &free, "given back by its lessee".to_owned(), now);
    (free, entry)
}

/// What is said of a rung, to the node's owner and to its lessee.
pub fn told(step: lease::Step) -> String {
    match step {
        lease::Step::Warn { ends_at } => format!(
            "its lease ends at {ends_at}: it is switched off then, and its disks are erased later unless the lease is extended"
        ),
        lease::Step::ShutOff { deleted_at } => format!(
            "its lease has ended: it is switched off, and its disks are erased at {deleted_at} unless the lease is extended"
        ),
        lease::Step::WarnOfDeletion { deleted_at } => {
            format!(
                "its lease has ended: its disks are erased at {deleted_at} unless the lease is extended"
            )
        }
        lease::Step::Delete => {
            "its lease has ended: it is taken out of use, and its disks are erased".to_owned()
        }
        lease::Step::KeepCopy => "its lease has ended: a copy is kept".to_owned(),
    }
}

#[cfg(test)]
mod tests;
