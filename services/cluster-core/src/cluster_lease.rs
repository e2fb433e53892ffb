//! The lease of a cluster: what its stages do to the cluster, and how an owner extends the lease or undoes its end.

use jiff::{SignedDuration, Timestamp};
use lease::{Due, ExtendError, Lease, LeaseSchedule, LeaseStage, RequiredState, Terms, UndoError};

use crate::lease_notice::second;
use crate::{Cluster, ClusterLease, DesiredState, LeasePower, Problem, Refusal, Settings};

/// After the servers start again, repair waits this long before it replaces members that are not nodes.
const START_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);

/// Why a change of a lease is refused. The lease stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseChangeRefused {
    #[error("cluster {name} has no lease to extend or undo")]
    NotLent { name: String },
    #[error("cluster {name} is being deleted")]
    Going { name: String },
    #[error(transparent)]
    Extend(#[from] ExtendError),
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// Grants the lease that the labels of a new cluster ask for; `None`: the cluster exists without end.
pub fn grant_lease(
    labels: &Settings,
    terms: Terms,
    now: Timestamp,
) -> Result<Option<ClusterLease>, Refusal> {
    let refused = |field, why: String| Refusal::Field { field, why };
    let lease = terms.grant(labels.lease, now);
    let lease = lease.map_err(|why| refused("labels/lease", why.to_string()))?;
    let notify = labels.lease_contact.clone();
    if lease.is_none() && notify.is_some() {
        let why = "needs the label lease: a cluster without a lease sends no notices";
        return Err(refused("labels/lease_contact", why.to_owned()));
    }
    Ok(lease.map(|lease| ClusterLease { lease, notify }))
}

/// Returns the stage of the lease that is due, or when the next one is.
pub fn lease_due(cluster: &Cluster, schedule: &LeaseSchedule, now: Timestamp) -> Due {
    match (&cluster.lending, cluster.desire) {
        (Some(lending), DesiredState::Exist) => schedule.due(&lending.lease, now),
        (None, _) | (_, DesiredState::Gone) => Due::Nothing,
    }
}

/// Returns the cluster after `step` of its lease was taken.
pub fn after_lease_stage(cluster: &Cluster, step: LeaseStage, now: Timestamp) -> Cluster {
    let mut taken = cluster.clone();
    if let Some(lending) = &mut taken.lending {
        lending.lease = lending.lease.with_stage_taken(&step, now);
    }
    match step {
        LeaseStage::SwitchOff { .. } => taken.rest = Some(LeasePower::Off),
        LeaseStage::Delete => {
            taken.desire = DesiredState::Gone;
            taken.asked_at = now;
        }
        LeaseStage::Warn { .. } | LeaseStage::WarnOfDeletion { .. } | LeaseStage::Snapshot => {}
    }
    taken
}

/// Returns the cluster with its lease extended to `until` at least. Servers that the lease switched off start again.
pub fn extend_lease(
    cluster: &Cluster,
    until: Timestamp,
    by: &str,
    terms: Terms,
    now: Timestamp,
) -> Result<Cluster, LeaseChangeRefused> {
    with_lease(cluster, now, |lease| Ok(lease.extended(until, by, terms, now)?))
}

/// Returns the cluster with the end of its lease undone. Servers that the lease switched off start again.
pub fn undo_lease(
    cluster: &Cluster,
    by: &str,
    schedule: &LeaseSchedule,
    terms: Terms,
    now: Timestamp,
) -> Result<Cluster, LeaseChangeRefused> {
    with_lease(cluster, now, |lease| Ok(lease.undone(by, schedule, terms, now)?))
}

/// Changes the lease. When the changed lease no longer wants the servers off, they start again.
fn with_lease(
    cluster: &Cluster,
    now: Timestamp,
    change: impl FnOnce(&Lease) -> Result<Lease, LeaseChangeRefused>,
) -> Result<Cluster, LeaseChangeRefused> {
    let name = || cluster.name.to_string();
    if cluster.desire == DesiredState::Gone {
        return Err(LeaseChangeRefused::Going { name: name() });
    }
    let lending =
        cluster.lending.as_ref().ok_or_else(|| LeaseChangeRefused::NotLent { name: name() })?;
    let lease = change(&lending.lease)?;
    let rest = match (cluster.rest, lease.required_state()) {
        (Some(LeasePower::Off), RequiredState::AsRequested) => {
            Some(LeasePower::Waking { since: now })
        }
        (rest, RequiredState::AsRequested | RequiredState::Off | RequiredState::Deleted) => rest,
    };
    let lending = Some(ClusterLease { lease, notify: lending.notify.clone() });
    Ok(Cluster { lending, rest, ..cluster.clone() })
}

/// Returns whether the cluster is off or starting after an observation. A cluster has started when every condition is true, or after
/// [`START_TIMEOUT`].
pub(crate) fn rest_after(
    cluster: &Cluster,
    all_is_well: bool,
    now: Timestamp,
) -> Option<LeasePower> {
    match cluster.rest {
        Some(LeasePower::Waking { since })
            if all_is_well || now.duration_since(since) > START_TIMEOUT =>
        {
            None
        }
        rest => rest,
    }
}

/// Returns the problem that the conditions of a cluster show after its lease ended. `still_on` counts the servers that still run.
pub fn off_problem(cluster: &Cluster, schedule: &LeaseSchedule, still_on: usize) -> Problem {
    let ended_at = cluster.lending.as_ref().and_then(|it| it.lease.taken.ended_at);
    let until = ended_at.map_or_else(String::new, |at| {
        format!(
            ", and the cluster is deleted at {} at the earliest",
            second(schedule.deleted_at(at))
        )
    });
    let machines = match still_on {
        0 => "the members are switched off".to_owned(),
        still_on => format!("{still_on} of the members are still on"),
    };
    Problem {
        reason: "LeaseEnded".to_owned(),
        message: format!("the lease has ended: {machines}{until}"),
        next_action: "extend the lease with bedplate cluster extend, or undo its end with bedplate cluster undo".to_owned(),
        is_final: false,
    }
}

#[cfg(test)]
mod tests;
