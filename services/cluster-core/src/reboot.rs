//! Reboots of members for updates of their operating system, one member at a time.
//!
//! A member asks before it reboots, and again until it is permitted. The first question is recorded, and turns evict the pods of the member
//! as their disruption budgets allow. Permission is recorded once the member is drained; a control-plane member also needs all others to be
//! ready then, because the drain may have taken long. After the reboot the member says so, and a turn uncordons its Kubernetes node.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{
    ClusterObservation, ClusterSpec, DesiredState, Event, GroupRole, MemberName, MemberReboot,
    NodeGroup, NodeHealth, RebootPhase, Severity,
};

/// How long a member may need to be drained, and to reboot. Afterwards others may reboot.
const LIMIT: SignedDuration = SignedDuration::from_mins(30);
/// How long a member waits whose pods could not be evicted. Each attempt evicts those pods again that can be evicted.
const RESTS: SignedDuration = SignedDuration::from_hours(6);

/// The answer to a member that asks whether it may reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebootAnswer {
    Permitted,
    /// The member has to ask again. The text says why, for people.
    Wait(String),
}

/// The decision about a question or a report of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebootDecision {
    pub answer: RebootAnswer,
    /// The new record of the reboot, with an event. The answer counts only once both are written. `None`: nothing is recorded.
    pub change: Option<(MemberReboot, Event)>,
}

/// Decides whether `machine` may reboot. `drained` are the members that drains of hosts take out.
pub fn ask_reboot(
    spec: &ClusterSpec<'_>,
    drained: &BTreeSet<MemberName>,
    machine: &MemberName,
    now: Timestamp,
) -> RebootDecision {
    let wait = |why: String| RebootDecision { answer: RebootAnswer::Wait(why), change: None };
    if let Some(why) = spec.cluster.reboot.as_ref().and_then(|it| hold_up(it, machine)) {
        return wait(why);
    }
    if spec.cluster.is_rebooting(machine) {
        return RebootDecision { answer: RebootAnswer::Permitted, change: None };
    }
    let failed = spec.cluster.undrained.get(machine);
    if failed.is_some_and(|since| now.duration_since(*since) < RESTS) {
        return wait(format!(
            "the pods of member {machine} could not be evicted; try again in some hours"
        ));
    }
    if let Some(why) = hindrance(spec, drained, machine) {
        return wait(why);
    }
    let reboot =
        MemberReboot { machine: machine.clone(), phase: RebootPhase::Draining, since: now };
    let message = format!("member {machine} wants to reboot: its pods are evicted first");
    let event = Event::new(spec.cluster.id, Severity::Info, "RebootRequested", message, now);
    let answer = RebootAnswer::Wait(format!("the pods of member {machine} are evicted"));
    RebootDecision { answer, change: Some((reboot, event)) }
}

/// Returns why `machine` waits because of a reboot that is recorded.
fn hold_up(reboot: &MemberReboot, machine: &MemberName) -> Option<String> {
    let is_own = reboot.machine == *machine;
    match reboot.phase {
        RebootPhase::Permitted if is_own => None,
        RebootPhase::Draining if is_own => {
            Some(format!("the pods of member {machine} are evicted"))
        }
        RebootPhase::Ended | RebootPhase::Failed if is_own => {
            Some(format!("the Kubernetes node of member {machine} is still cordoned"))
        }
        RebootPhase::Draining
        | RebootPhase::Permitted
        | RebootPhase::Ended
        | RebootPhase::Failed => Some(format!("member {} reboots", reboot.machine)),
    }
}

/// Decides about the report of `machine` that it runs as intended, which it also sends after each boot.
pub fn end_reboot(
    spec: &ClusterSpec<'_>,
    machine: &MemberName,
    now: Timestamp,
) -> Option<(MemberReboot, Event)> {
    let reboot = spec.cluster.reboot.as_ref().filter(|reboot| reboot.machine == *machine)?;
    let message = match reboot.phase {
        RebootPhase::Draining => format!("member {machine} does not reboot now"),
        RebootPhase::Permitted => format!("member {machine} has rebooted"),
        RebootPhase::Ended | RebootPhase::Failed => return None,
    };
    let event = Event::new(spec.cluster.id, Severity::Info, "RebootEnded", message, now);
    Some((MemberReboot { phase: RebootPhase::Ended, since: now, ..reboot.clone() }, event))
}

/// Returns why `machine` may not begin to reboot now: all members have to be well, because one of them is about to leave for minutes.
fn hindrance(
    spec: &ClusterSpec<'_>,
    drained: &BTreeSet<MemberName>,
    machine: &MemberName,
) -> Option<String> {
    let ClusterSpec { cluster, groups } = spec;
    let group = groups.iter().find(|group| group.name == machine.group);
    if !group.is_some_and(|group| group.labels.settings().os_updates) {
        return Some("the label os_updates_enabled of the node group is not true".to_owned());
    }
    if !cluster.authorities.is_settled() {
        return Some("a CA rotation is in progress".to_owned());
    }
    if cluster.is_rolling() {
        return Some("an upgrade is in progress".to_owned());
    }
    if cluster.restore.is_some() {
        return Some("the control plane is being restored".to_owned());
    }
    if cluster.rest.is_some() {
        return Some("the servers of the cluster are off or are starting".to_owned());
    }
    let masters = groups.iter().filter(|group| group.role == GroupRole::Master);
    let masters: BTreeSet<MemberName> = masters.flat_map(NodeGroup::refs).collect();
    let why = |other: &MemberName| {
        if !cluster.nodes.contains(other) {
            Some(format!("member {other} is not a Kubernetes node yet"))
        } else if other != machine && cluster.unready.contains(other) {
            Some(format!("member {other} is not ready"))
        } else if masters.contains(other) && cluster.is_renewing(other) {
            Some(format!("member {other} renews its certificates"))
        } else if drained.contains(other) {
            Some(format!("member {other} is on a host that is being drained"))
        } else {
            None
        }
    };
    groups.iter().flat_map(NodeGroup::refs).find_map(|other| why(&other))
}

/// Returns the member whose pods are evicted because it wants to reboot.
pub(crate) fn member_to_drain(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) -> Option<MemberName> {
    let reboot = spec.cluster.reboot.as_ref();
    let reboot = reboot.filter(|reboot| reboot.phase == RebootPhase::Draining)?;
    let said = seen.machines.get(&reboot.machine)?;
    let is_node = matches!(said.node, NodeHealth::Ready | NodeHealth::NotReady { .. });
    (stays(spec, &reboot.machine) && is_node && !said.is_drained).then(|| reboot.machine.clone())
}

/// Returns the reboot after an observation; `None`: no member reboots.
pub(crate) fn reboot_after(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    now: Timestamp,
) -> Option<MemberReboot> {
    let reboot = spec.cluster.reboot.clone()?;
    if !stays(spec, &reboot.machine) {
        return None;
    }
    let is_drained = seen.machines.get(&reboot.machine).is_some_and(|said| said.is_drained);
    let is_uncordoned = seen.uncordoned.as_ref() == Some(&reboot.machine);
    let lasts = now.duration_since(reboot.since);
    let phase = match reboot.phase {
        RebootPhase::Draining if is_drained && keeps_quorum(spec, seen, &reboot.machine) => {
            RebootPhase::Permitted
        }
        RebootPhase::Draining if lasts >= LIMIT => RebootPhase::Failed,
        RebootPhase::Permitted if lasts >= LIMIT => RebootPhase::Ended,
        RebootPhase::Ended | RebootPhase::Failed if is_uncordoned => return None,
        RebootPhase::Draining
        | RebootPhase::Permitted
        | RebootPhase::Ended
        | RebootPhase::Failed => return Some(reboot),
    };
    Some(MemberReboot { phase, since: now, ..reboot })
}

/// Returns, after an observation, the members whose pods could not be evicted for a reboot in the last hours.
pub(crate) fn undrained_after(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    now: Timestamp,
) -> BTreeMap<MemberName, Timestamp> {
    let is_failed = |it: &&MemberReboot| {
        it.phase == RebootPhase::Failed && seen.uncordoned.as_ref() == Some(&it.machine)
    };
    let failed = spec.cluster.reboot.as_ref().filter(is_failed);
    let mut undrained = spec.cluster.undrained.clone();
    undrained.extend(failed.map(|it| (it.machine.clone(), now)));
    undrained.retain(|machine, since| stays(spec, machine) && now.duration_since(*since) < RESTS);
    undrained
}

/// Whether etcd may do without this member for minutes: all other control-plane members are ready, and no drain of a host takes one out.
fn keeps_quorum(spec: &ClusterSpec<'_>, seen: &ClusterObservation, machine: &MemberName) -> bool {
    let masters = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    let masters: BTreeSet<MemberName> = masters.flat_map(NodeGroup::refs).collect();
    let is_well = |other: &MemberName| {
        let said = seen.machines.get(other);
        said.is_some_and(|said| said.node == NodeHealth::Ready) && !seen.drained.contains(other)
    };
    !masters.contains(machine) || masters.iter().filter(|it| *it != machine).all(is_well)
}

/// Whether the member is still wanted.
fn stays(spec: &ClusterSpec<'_>, machine: &MemberName) -> bool {
    spec.cluster.desire == DesiredState::Exist
        && spec.groups.iter().flat_map(NodeGroup::refs).any(|other| other == *machine)
}

#[cfg(test)]
mod tests;
