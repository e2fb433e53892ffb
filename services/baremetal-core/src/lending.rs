//! Leases of nodes: lending a node to a project, the records of the stages at the end of the lease, and the return of the node.

use crate::drain::shown_reason;
use crate::{
    DrainFate, DrainOwner, HistoryEntry, LeaseDrain, Node, NodeLease, end_maintenance_drain,
    release,
};
use jiff::Timestamp;
use lease::{
    ExtendError, Lease, LeaseSchedule, Length, MailAddress, RequiredState, TermError, Terms,
    UndoError,
};

/// A request to lend a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LendRequest {
    /// The project that becomes the lessee.
    pub lessee: String,
    /// How long the lease lasts, from now on.
    pub length: Length,
    /// A mail address that receives notices about the lease.
    pub notify: Option<MailAddress>,
}

/// Why a node is not lent, or its lease not extended. The node is left unmodified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LendError {
    #[error("lessee: node \"{node}\" is used by another project")]
    Taken { node: String },
    #[error("node \"{node}\" is being returned; it can be lent again after cleaning")]
    Returning { node: String },
    /// The node is not lent, or is lent without end.
    #[error("node \"{node}\" has no lease")]
    NotLent { node: String },
    #[error(transparent)]
    Term(#[from] TermError),
    #[error(transparent)]
    Extend(#[from] ExtendError),
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// Lends the node at `now`, on behalf of the user `by`.
///
/// Lending the node again to the same lessee starts a new term, which may end earlier than the old term. The lessee is warned before the
/// new end as before any other.
pub fn lend(
    node: &Node,
    loan: LendRequest,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    if node.lessee.as_ref().is_some_and(|lessee| *lessee != loan.lessee) {
        return Err(LendError::Taken { node: node.label() });
    }
    if node.wanted_by_lease() == RequiredState::Deleted {
        return Err(LendError::Returning { node: node.label() });
    }
    terms.check(loan.length)?;
    let lease = Lease::new(now, loan.length);
    let event = format!("lent to project {} until {}", loan.lessee, lease.until);
    let reserved = node.lending.as_ref().is_some_and(|lending| lending.reserved);
    let drain = node.lending.as_ref().and_then(|lending| lending.drain.clone());
    let lending = NodeLease { lease, by: by.to_owned(), notify: loan.notify, reserved, drain };
    let lent = Node { lessee: Some(loan.lessee), lending: Some(lending), ..node.clone() };
    let lent = taking_servers(lent, by, now);
    let entry = HistoryEntry::changed(node, &lent, event, now);
    Ok((lent, entry))
}

/// Extends the lease of the node until at least `until`.
pub fn extend(
    node: &Node,
    until: Timestamp,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    with_lease(node, by, now, |lending| Ok(lending.lease.extended(until, by, terms, now)?))
}

/// Undoes the end of the node's lease. The machine stays off until somebody powers it on.
pub fn undo(
    node: &Node,
    by: &str,
    schedule: &LeaseSchedule,
    terms: Terms,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), LendError> {
    with_lease(node, by, now, |lending| Ok(lending.lease.undone(by, schedule, terms, now)?))
}

fn with_lease(
    node: &Node,
    by: &str,
    now: Timestamp,
    change: impl FnOnce(&NodeLease) -> Result<Lease, LendError>,
) -> Result<(Node, HistoryEntry), LendError> {
    let not_lent = || LendError::NotLent { node: node.label() };
    let lending = node.lending.as_ref().ok_or_else(not_lent)?;
    let lease = change(lending)?;
    let event = format!("lent until {}", lease.until);
    let lent = Node { lending: Some(NodeLease { lease, ..lending.clone() }), ..node.clone() };
    let lent = taking_servers(lent, by, now);
    let entry = HistoryEntry::changed(node, &lent, event, now);
    Ok((lent, entry))
}

/// Returns the node whose lease was changed. If the lease goes on, the conductor will end the drain that the end of the lease began:
/// otherwise the host would take no servers until an operator looks.
fn taking_servers(mut node: Node, by: &str, now: Timestamp) -> Node {
    if node.wanted_by_lease() != RequiredState::AsRequested {
        return node;
    }
    let drain = node.lending.as_mut().and_then(|lending| lending.drain.take());
    match drain.map(|drain| (drain.owner.end(), drain.host)) {
        Some((DrainFate::EndDrain, host)) => {
            end_maintenance_drain(&node, &host, Some(by.to_owned()), now)
        }
        Some((DrainFate::LeaveDrain, _)) | None => node,
    }
}

/// Returns the node with the record of the drain that the end of its lease needs.
pub fn drain_noted(node: &Node, host: &str, owner: DrainOwner) -> Node {
    let mut noted = node.clone();
    if let Some(lending) = &mut noted.lending {
        lending.drain = Some(LeaseDrain { host: host.to_owned(), owner });
    }
    noted
}

/// Returns the node with `step` of its lease recorded as taken, and the entry for its history.
pub fn with_stage_taken(
    node: &Node,
    step: lease::LeaseStage,
    now: Timestamp,
) -> (Node, HistoryEntry) {
    let mut taken = node.clone();
    if let Some(lending) = &mut taken.lending {
        lending.lease = lending.lease.with_stage_taken(&step, now);
    }
    let entry = HistoryEntry::changed(node, &taken, visible_reason(step), now);
    (taken, entry)
}

/// Ends the lease of a node whose instance ends, if the node was lent for a reservation.
pub(crate) fn end_lease_of_reservation(node: &mut Node, now: Timestamp) {
    if let Some(lending) = node.lending.as_mut().filter(|lending| lending.reserved) {
        lending.lease = lending.lease.with_stage_taken(&lease::LeaseStage::Delete, now);
    }
}

/// Returns the node without a lessee, and the entry for its history.
pub fn returned(node: &Node, now: Timestamp) -> (Node, HistoryEntry) {
    // An allocation that the lessee made and never used ends too.
    let free = if node.allocation.is_some() { release(node) } else { node.clone() };
    let free = Node { lessee: None, lending: None, ..free };
    let entry = HistoryEntry::changed(node, &free, "returned by its lessee".to_owned(), now);
    (free, entry)
}

/// Returns the entry for the history of a node whose lease has ended and whose compute host still carries servers. The lessee reads the
/// history, so an entry for a node with a lessee does not name the servers and clusters of other projects.
pub fn end_held(node: &Node, why: &str, now: Timestamp) -> HistoryEntry {
    let ended = node.lending.as_ref().map(|lending| lending.lease.until.to_string());
    let (ended, why) = (ended.unwrap_or_default(), shown_reason(node, why));
    let event = format!("the lease ended at {ended}, but the node cannot be taken out yet: {why}");
    HistoryEntry::changed(node, node, event, now)
}

/// Returns the text about a stage for the node's owner and its lessee.
pub fn visible_reason(step: lease::LeaseStage) -> String {
    match step {
        lease::LeaseStage::Warn { ends_at } => format!(
            "the lease ends at {ends_at}; the machine is then switched off, and its disks are erased later unless the lease is extended"
        ),
        lease::LeaseStage::SwitchOff { deleted_at } => format!(
            "the lease has ended; the machine is switched off, and its disks are erased at {deleted_at} unless the lease is extended"
        ),
        lease::LeaseStage::WarnOfDeletion { deleted_at } => {
            format!(
                "the lease has ended; the disks are erased at {deleted_at} unless the lease is extended"
            )
        }
        lease::LeaseStage::Delete => {
            "the lease has ended; the node is undeployed and its disks are erased".to_owned()
        }
        lease::LeaseStage::Snapshot => "the lease has ended; a snapshot is kept".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
