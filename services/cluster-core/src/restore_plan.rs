//! Decides about the restoration of a cluster's control plane from a backup of etcd.
//!
//! First all control-plane servers are deleted, so that no old member of etcd can answer. Then the same members get new servers, each of
//! which restores the snapshot before its etcd starts for the first time. Names, ports and certificate authorities stay, and with them the
//! endpoint of the API, the kubeconfigs, and the workers.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Backup, BackupState, BackupUuid, Cluster, ClusterObservation, ClusterSpec, Condition,
    ConditionKind, ConditionStatus, Delivery, DesiredState, Event, GroupRole, Key, LedgerEntry,
    LedgerState, MemberName, NodeGroup, NodeHealth, Refusal, RepairLimits, Restore, RestorePhase,
    Severity,
};

/// How long after the last progress of a restoration a repeated request changes nothing: the caller may have got no answer. Later the request
/// begins again, because a new server may be lost before the control plane runs, and nothing is repaired meanwhile.
const REPEATED_WITHIN: SignedDuration = SignedDuration::from_mins(30);

/// Whether a restoration may replace a control plane that is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreForce {
    /// Only a control plane without quorum is replaced.
    IfLost,
    /// Everything since the backup is undone, whatever the state of the control plane.
    Always,
}

/// Returns the cluster with a restoration started from `backup`; `None`: from the newest tested backup. A repeated request changes nothing for
/// a while, and a request for another backup begins again.
pub fn start_restore(
    cluster: &Cluster,
    groups: &[NodeGroup],
    backup: Option<BackupUuid>,
    force: RestoreForce,
    now: Timestamp,
) -> Result<Cluster, Refusal> {
    check_restorable(cluster, force)?;
    check_delivery(groups)?;
    let backup = chosen(cluster, backup)?;
    check_contents(&ClusterSpec { cluster, groups }, backup)?;
    let is_repeated =
        |it: &Restore| it.backup == backup.id && now.duration_since(it.since) <= REPEATED_WITHIN;
    if cluster.restore.as_ref().is_some_and(is_repeated) {
        return Ok(cluster.clone());
    }
    let is_master = |member: &MemberName| is_control_plane(member, groups);
    let phase = RestorePhase::Clearing;
    let restore = Restore { backup: backup.id, requested_at: now, phase, since: now };
    let mut begun = cluster.clone();
    // The members have to become nodes again.
    begun.nodes.retain(|member| !is_master(member));
    begun.unready.retain(|member| !is_master(member));
    (begun.restore, begun.asked_at) = (Some(restore), now);
    Ok(begun)
}

fn check_restorable(cluster: &Cluster, force: RestoreForce) -> Result<(), Refusal> {
    let busy = |why: &str| Err(Refusal::Busy { why: why.to_owned() });
    if cluster.desire == DesiredState::Gone {
        return Err(Refusal::Deleting { name: cluster.name.to_string() });
    }
    if cluster.rest.is_some() {
        return busy("the servers of the cluster are off or starting; try again when they run");
    }
    if cluster.completed_at.is_none() {
        return busy("the cluster was never complete, so there is nothing to restore");
    }
    if !cluster.authorities.is_settled() {
        return busy("a CA rotation is in progress, which replaces the keys of the control plane");
    }
    let of = |it: &&Condition| it.kind == ConditionKind::ControlPlaneAvailable;
    let is_available = cluster.conditions.iter().find(of).map(|it| it.status);
    if is_available == Some(ConditionStatus::True) && force == RestoreForce::IfLost {
        return busy(
            "the control plane is available, and a restoration undoes every change since the backup; repeat the request \
             with force if that is what you want",
        );
    }
    Ok(())
}

/// Checks that new members can fetch the backup: they do so with the token of their reports.
fn check_delivery(groups: &[NodeGroup]) -> Result<(), Refusal> {
    let inline = groups.iter().filter(|group| group.role == GroupRole::Master);
    if inline.map(|group| group.labels.settings().delivery).any(|it| it == Delivery::Inline) {
        let why = "control-plane members with the label user_data_delivery=inline do not reach clusterd, and cannot fetch \
                   a backup";
        return Err(Refusal::Busy { why: why.to_owned() });
    }
    Ok(())
}

/// Returns the stored backup with this id, or the newest one that was tested.
fn chosen(cluster: &Cluster, backup: Option<BackupUuid>) -> Result<&Backup, Refusal> {
    let field = |why: String| Refusal::Field { field: "backup", why };
    let Some(id) = backup else {
        let tested = cluster.backups.iter().filter(|it| it.is_stored() && it.tested_at.is_some());
        return tested.max_by_key(|it| it.requested_at).ok_or_else(|| {
            field(
                "the cluster has no backup that was tested; name the id of a stored one".to_owned(),
            )
        });
    };
    let found = cluster.backups.iter().find(|it| it.id == id);
    let found = found.ok_or_else(|| field(format!("the cluster has no backup {id}")))?;
    match found.state {
        BackupState::Stored => Ok(found),
        BackupState::Wanted | BackupState::Failed | BackupState::Deleting => {
            let state = found.state;
            Err(field(format!("backup {id} is {state}, and only a stored one can be restored")))
        }
    }
}

/// Checks that today's members can start from the contents of a backup. During an upgrade they may have the new version.
fn check_contents(spec: &ClusterSpec<'_>, backup: &Backup) -> Result<(), Refusal> {
    let ClusterSpec { cluster, groups } = spec;
    let field = |why: String| Err(Refusal::Field { field: "backup", why });
    let Some(contents) = &backup.contents else {
        return field(format!("backup {} has no contents", backup.id));
    };
    let (generation, _) = cluster.authorities.generations();
    if contents.authorities != generation {
        return field(format!(
            "backup {} is from before the last CA rotation, and its Secrets and ConfigMaps have certificates that no \
             member trusts any more: choose a newer one",
            backup.id
        ));
    }
    let masters = groups.iter().find(|group| group.role == GroupRole::Master);
    let is = masters.map_or(cluster.kubernetes, |group| spec.version_of(group));
    let was = contents.kubernetes;
    // An API server reads what its own and the previous minor version wrote.
    if was > is || was.minor + 1 < is.minor {
        return field(format!(
            "backup {} is of Kubernetes {was}, which {is} cannot read: choose another one",
            backup.id
        ));
    }
    Ok(())
}

fn is_control_plane(member: &MemberName, groups: &[NodeGroup]) -> bool {
    let of = |group: &&NodeGroup| group.name == member.group;
    groups.iter().find(of).is_some_and(|group| group.role == GroupRole::Master)
}

/// Whether this is a server of the control plane.
pub(crate) fn is_control_plane_server(key: &Key, groups: &[NodeGroup]) -> bool {
    let of = if let Key::Twin(of) = key { of } else { key };
    matches!(of, Key::Server(member) if is_control_plane(member, groups))
}

/// Returns the state of the restoration after an observation, and an event when it is over.
///
/// `ledger` are the entries from before the observation: no new server is created while an old one may still appear. The restoration is
/// over when all members of the control plane are ready. When some do not become ready in time, a quorum is enough: repair replaces the
/// others.
pub(crate) fn restore_after(
    cluster: &Cluster,
    groups: &[NodeGroup],
    (seen, ledger): (&ClusterObservation, &[LedgerEntry]),
    limits: &RepairLimits,
    now: Timestamp,
) -> (Option<Restore>, Option<Event>) {
    let Some(restore) = &cluster.restore else { return (None, None) };
    let unchanged = (Some(restore.clone()), None);
    if seen.at.is_none() || cluster.desire == DesiredState::Gone {
        return unchanged;
    }
    match restore.phase {
        RestorePhase::Clearing => {
            let of = |key: &Key| is_control_plane_server(key, groups);
            // A create request without an answer may still be carried out.
            let may_come = |it: &&LedgerEntry| {
                let asked = it.updated_at.unwrap_or(it.created_at);
                it.state == LedgerState::Intended
                    && it.cloud_id.is_none()
                    && now.duration_since(asked) <= limits.lands_within
            };
            let mut coming = ledger.iter().filter(may_come);
            let is_coming = coming.any(|it| it.kind.parse().is_ok_and(|key| of(&key)));
            if is_coming || seen.objects.keys().any(of) {
                return unchanged;
            }
            let next = Restore { phase: RestorePhase::Starting, since: now, ..restore.clone() };
            let said = format!("the control plane starts from backup {}", restore.backup);
            let event = Event::new(cluster.id, Severity::Info, "RestoreStarts", said, now);
            (Some(next), Some(event))
        }
        RestorePhase::Starting => {
            let masters = groups.iter().filter(|group| group.role == GroupRole::Master);
            let all: Vec<MemberName> = masters.flat_map(NodeGroup::refs).collect();
            let is_ready = |member: &&MemberName| {
                let said = seen.machines.get(*member);
                said.is_some_and(|said| said.node == NodeHealth::Ready)
            };
            let ready = all.iter().filter(is_ready).count();
            let is_late = now.duration_since(restore.since) > limits.become_node_within;
            if ready < all.len() && !(is_late && ready > all.len() / 2) {
                return unchanged;
            }
            let said = format!("the control plane runs again, from backup {}", restore.backup);
            let event = Event::new(cluster.id, Severity::Info, "Restored", said, now);
            (None, Some(event))
        }
    }
}

#[cfg(test)]
mod tests;
