//! A cluster that is lent until a time: what happens to it at the end, and how it comes back.

use jiff::{SignedDuration, Timestamp};
use lease::{Due, ExtendError, Ladder, Lease, MailAddress, Step, Terms, UndoError, Wanted};
use serde::{Deserialize, Serialize};

use crate::{Cluster, Desire, Problem, Severity};

/// How long machines that were switched on again have, before one that is not a node is replaced.
const WAKES_WITHIN: SignedDuration = SignedDuration::from_mins(15);

/// Until when a cluster is lent to its project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lending {
    /// How long, and what of its end was already done.
    pub lease: Lease,
    /// A mail address that is told of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
}

/// Why the machines of a cluster are not as they would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// Its lease ended: they are switched off, and stay so.
    Off,
    /// They are switched on again.
    Waking {
        /// Since when.
        since: Timestamp,
    },
}

/// Why the lease of a cluster is not changed. It is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LendError {
    /// It is lent without end.
    #[error("cluster {name} has no lease: it is lent without end")]
    NotLent {
        /// Its name.
        name: String,
    },
    /// It is being deleted, as somebody asked.
    #[error("cluster {name} is being deleted")]
    Going {
        /// Its name.
        name: String,
    },
    /// It cannot be extended.
    #[error(transparent)]
    Extend(#[from] ExtendError),
    /// Its end cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// What is to be done about `cluster` because of its lease.
pub fn lease_due(cluster: &Cluster, ladder: &Ladder, now: Timestamp) -> Due {
    match (&cluster.lending, cluster.desire) {
        (Some(lending), Desire::Exist) => ladder.due(&lending.lease, now),
        (None, _) | (_, Desire::Gone) => Due::Nothing,
    }
}

/// The cluster once `step` of its lease's end was taken.
pub fn lease_taken(cluster: &Cluster, step: Step, now: Timestamp) -> Cluster {
    let mut taken = cluster.clone();
    if let Some(lending) = &mut taken.lending {
        lending.lease = lending.lease.taken(&step, now);
    }
    match step {
        Step::ShutOff { .. } => taken.rest = Some(Rest::Off),
        Step::Delete => {
            taken.desire = Desire::Gone;
            taken.asked_at = now;
        }
        Step::Warn { .. } | Step::WarnOfDeletion { .. } | Step::KeepCopy => {}
    }
    taken
}

/// The cluster, lent until `until` at least.
pub fn extend_lease(
    cluster: &Cluster,
    until: Timestamp,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<Cluster, LendError> {
    with_lease(cluster, now, |lease| Ok(lease.extended(until, by, terms, now)?))
}

/// The cluster, with the end of its lease undone.
pub fn undo_lease(
    cluster: &Cluster,
    by: &str,
    ladder: &Ladder,
    terms: Terms,
    now: Timestamp,
) -> Result<Cluster, LendError> {
    with_lease(cluster, now, |lease| Ok(lease.undone(by, ladder, terms, now)?))
}

/// What was off is switched on again.
fn with_lease(
    cluster: &Cluster,
    now: Timestamp,
    change: impl FnOnce(&Lease) -> Result<Lease, LendError>,
) -> Result<Cluster, LendError> {
    let name = || cluster.name.to_string();
    if cluster.desire == Desire::Gone {
        return Err(LendError::Going { name: name() });
    }
    let lending = cluster.lending.as_ref().ok_or_else(|| LendError::NotLent { name: name() })?;
    let lease = change(&lending.lease)?;
    let rest = match (cluster.rest, lease.wanted()) {
        (Some(Rest::Off), Wanted::AsAsked) => Some(Rest::Waking { since: now }),
        (rest, Wanted::AsAsked | Wanted::Off | Wanted::Gone) => rest,
    };
    let lending = Some(Lending { lease, notify: lending.notify.clone() });
    Ok(Cluster { lending, rest, ..cluster.clone() })
}

impl Cluster {
    /// Whether its machines are to be off.
    pub fn is_off(&self) -> bool {
        self.rest == Some(Rest::Off) && self.desire == Desire::Exist
    }

    /// Since when its machines are switched on again.
    pub fn waking_since(&self) -> Option<Timestamp> {
        match (self.rest, self.desire) {
            (Some(Rest::Waking { since }), Desire::Exist) => Some(since),
            (Some(Rest::Off) | None, _) | (_, Desire::Gone) => None,
        }
    }
}

/// How a cluster rests once it was looked at: what was switched on again is awake once all of it is as it should be, or had the time.
pub(crate) fn rest_after(cluster: &Cluster, all_is_well: bool, now: Timestamp) -> Option<Rest> {
    match cluster.rest {
        Some(Rest::Waking { since }) if all_is_well || now.duration_since(since) > WAKES_WITHIN => {
            None
        }
        rest => rest,
    }
}

/// Why nothing goes on in a cluster whose lease ended, of whose machines so many are still on.
pub fn off_problem(cluster: &Cluster, ladder: &Ladder, still_on: usize) -> Problem {
    let ended_at = cluster.lending.as_ref().and_then(|it| it.lease.taken.ended_at);
    let until = ended_at.map_or_else(String::new, |at| {
        format!(" and it is deleted at {} at the earliest", second(ladder.deleted_at(at)))
    });
    let machines = match still_on {
        0 => "its machines are switched off".to_owned(),
        still_on => format!("{still_on} of its machines are still to be switched off"),
    };
    Problem {
        reason: "LeaseEnded".to_owned(),
        message: format!("its lease has ended: {machines},{until}"),
        next_action: "extend its lease, or undo its end: bedplate cluster undo".to_owned(),
        is_final: false,
    }
}

/// A rung as it is told: what happened for programs, how bad it is, and the same for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTold {
    /// An event's reason: `LeaseEnds`.
    pub reason: &'static str,
    /// A notice's event: `lease.ends`.
    pub event: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// For people.
    pub message: String,
    /// When what is told of happens.
    pub happens_at: Option<Timestamp>,
}

/// What is said of a rung. `what` is `cluster`, and what is done to it in the end is said of its machines and all that is in it.
pub fn lease_told(step: Step) -> LeaseTold {
    let told = |reason, event, severity, happens_at, message| LeaseTold {
        reason,
        event,
        severity,
        message,
        happens_at,
    };
    match step {
        Step::Warn { ends_at } => told(
            "LeaseEnds",
            "lease.ends",
            Severity::Warning,
            Some(ends_at),
            format!(
                "the lease ends at {}: the machines are switched off then, unless it is extended",
                second(ends_at)
            ),
        ),
        Step::ShutOff { deleted_at } => told(
            "LeaseEnded",
            "lease.ended",
            Severity::Warning,
            Some(deleted_at),
            format!(
                "the lease has ended: the machines are switched off, and deleted at {} unless that is undone",
                second(deleted_at)
            ),
        ),
        Step::KeepCopy => told(
            "CopyKept",
            "lease.copy_kept",
            Severity::Info,
            None,
            "the lease has ended: a copy was made".to_owned(),
        ),
        Step::WarnOfDeletion { deleted_at } => told(
            "DeletionNear",
            "lease.deletion_near",
            Severity::Warning,
            Some(deleted_at),
            format!(
                "the lease has ended: all of it is deleted at {} with everything in it, unless that is undone",
                second(deleted_at)
            ),
        ),
        Step::Delete => told(
            "LeaseDeleted",
            "lease.deleted",
            Severity::Warning,
            None,
            "the lease has ended, and nobody undid that: it is deleted".to_owned(),
        ),
    }
}

/// To the second: nobody wants to read more of a time.
fn second(at: Timestamp) -> Timestamp {
    at.round(jiff::Unit::Second).unwrap_or(at)
}

#[cfg(test)]
mod tests;
