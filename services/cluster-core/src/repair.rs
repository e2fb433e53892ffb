//! Decides which members are replaced.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Backoff, Bootstrap, CloudObjectState, ClusterObservation, ClusterSpec, DesiredState, GroupRole,
    Key, MemberName, NodeGroup, NodeHealth,
};

/// The times and numbers that rule repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairLimits {
    /// How long a node may be unready before its member is replaced.
    pub not_ready_for: SignedDuration,
    /// How many workers may be missing at once because of repair.
    pub workers_at_once: usize,
    /// How long a server may take to become a Kubernetes node.
    pub become_node_within: SignedDuration,
    /// The waiting time before an object is created again after the cloud failed at it.
    pub backoff: Backoff,
    /// How long the cloud may still carry out a create request that got no answer.
    pub lands_within: SignedDuration,
}

impl RepairLimits {
    /// Five minutes, one worker at once, a quarter of an hour; an unanswered request may be carried out within a minute.
    pub const DEFAULT: RepairLimits = RepairLimits {
        not_ready_for: SignedDuration::from_mins(5),
        workers_at_once: 1,
        become_node_within: SignedDuration::from_mins(15),
        backoff: Backoff::DEFAULT,
        lands_within: SignedDuration::from_mins(1),
    };
}

/// The steps after which a control-plane member runs etcd.
const RUNS_ETCD: [&str; 3] = ["control-plane", "mark", "once"];
/// How much longer a member may take that fetches and restores a backup first.
const RESTORES_WITHIN: SignedDuration = SignedDuration::from_mins(30);

/// Returns the members whose servers are deleted and created again under the same name: they had enough time and never became nodes.
///
/// In a restoration, the API answers only when a majority of the new control-plane members runs. A new member that does not start its etcd is
/// created again without that answer.
pub fn servers_to_recreate(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    limits: &RepairLimits,
    now: Timestamp,
) -> Vec<MemberName> {
    if spec.cluster.desire == DesiredState::Gone || spec.cluster.rest.is_some() {
        return Vec::new();
    }
    let all = spec.groups.iter().flat_map(NodeGroup::refs);
    let is_late = |machine: &MemberName| {
        let server = seen.objects.get(&Key::Server(machine.clone()));
        let is_up = server.is_some_and(|found| found.state == CloudObjectState::Ready);
        let said = seen.machines.get(machine);
        let is_restored = starts_from_backup(spec, machine);
        let never = said.is_some_and(|said| match said.node {
            NodeHealth::Absent => said.bootstrap != Bootstrap::Done,
            NodeHealth::Unknown => is_restored && !runs_etcd(&said.bootstrap),
            NodeHealth::Ready | NodeHealth::NotReady { .. } => false,
        });
        let more = if is_restored { RESTORES_WITHIN } else { SignedDuration::ZERO };
        let limit = limits.become_node_within + more;
        let asked = said.and_then(|said| said.asked_at);
        is_up && never && asked.is_some_and(|asked| now.duration_since(asked) > limit)
    };
    all.filter(is_late).collect()
}

/// Whether this is a control-plane member whose new server starts from a backup.
fn starts_from_backup(spec: &ClusterSpec<'_>, machine: &MemberName) -> bool {
    let group = spec.groups.iter().find(|group| group.name == machine.group);
    let is_master = group.is_some_and(|group| group.role == GroupRole::Master);
    is_master && spec.cluster.starts_from().is_some()
}

/// Whether a control-plane member has reported that it runs etcd. Before that, its disk has nothing that happened since the restoration.
fn runs_etcd(bootstrap: &Bootstrap) -> bool {
    match bootstrap {
        Bootstrap::Silent => false,
        Bootstrap::At(step) => RUNS_ETCD.contains(&step.as_str()),
        // The failure of a later step.
        Bootstrap::Failed(why) => RUNS_ETCD[1..].iter().any(|step| why.starts_with(step)),
        Bootstrap::Done => true,
    }
}

/// Returns the members to replace now.
///
/// At most one control-plane member is replaced at a time, and only while the other ready members are a quorum: the new member must be able
/// to join etcd. No control-plane member is replaced while a drain takes another one out. A member that a drain takes out, or that reboots,
/// comes back, so it is not replaced. A cluster that was never complete is not repaired, because nothing depends on it yet. During a
/// restoration the nodes in Kubernetes are those of the past, so nothing is concluded from them.
pub fn members_to_replace(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    limits: &RepairLimits,
    now: Timestamp,
) -> Vec<MemberName> {
    let cluster = spec.cluster;
    let repairs =
        cluster.blueprint.labels.settings().repair && cluster.desire == DesiredState::Exist;
    let is_watched = cluster.completed_at.is_some() && cluster.rest.is_none();
    if !repairs || !is_watched || seen.at.is_none() || cluster.restore.is_some() {
        return Vec::new();
    }
    let broken = |machine: &MemberName| {
        !cluster.is_rebooting(machine) && is_broken(machine, seen, limits, now)
    };
    let mut replaced = Vec::new();
    for group in spec.groups {
        let machines: Vec<MemberName> = group.refs().collect();
        let (bad, well): (Vec<_>, Vec<_>) = machines.into_iter().partition(broken);
        let at_once = match group.role {
            GroupRole::Master => {
                // A replacement that does not become a node must not prevent the repair of the members that it comes after.
                let is_unjoined = |machine: &MemberName| {
                    group.is_replacement(machine.number) && !cluster.nodes.contains(machine)
                };
                let well: Vec<MemberName> =
                    well.iter().filter(|machine| !is_unjoined(machine)).cloned().collect();
                let is_drained = well.iter().any(|machine| seen.drained.contains(machine));
                usize::from(!is_drained && keeps_quorum(&well, seen))
            }
            GroupRole::Worker(_) => {
                let joining = well.iter().filter(|machine| !is_ready(machine, seen)).count();
                limits.workers_at_once.saturating_sub(joining)
            }
        };
        replaced.extend(bad.into_iter().take(at_once));
    }
    replaced
}

/// Whether all healthy members are ready etcd members and together a majority of the members of etcd.
fn keeps_quorum(well: &[MemberName], seen: &ClusterObservation) -> bool {
    let members = seen.machines.values().filter(|said| said.is_etcd_member).count();
    let ready = well.iter().filter(|machine| {
        is_ready(machine, seen)
            && seen.machines.get(*machine).is_some_and(|said| said.is_etcd_member)
    });
    let ready = ready.count();
    ready == well.len() && ready > members / 2
}

fn is_ready(machine: &MemberName, seen: &ClusterObservation) -> bool {
    seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
}

/// Whether a former node does not come back by itself: its server is deleted or failed, or the node has been unready for too long.
fn is_broken(
    machine: &MemberName,
    seen: &ClusterObservation,
    limits: &RepairLimits,
    now: Timestamp,
) -> bool {
    let said = seen.machines.get(machine);
    let was_node = said.is_some_and(|said| said.bootstrap == Bootstrap::Done);
    if !was_node || seen.drained.contains(machine) {
        return false;
    }
    let server = seen.objects.get(&Key::Server(machine.clone())).map(|found| &found.state);
    let lost =
        matches!(server, None | Some(CloudObjectState::Failed(_) | CloudObjectState::Deleting));
    let unready = match said.map(|said| &said.node) {
        Some(NodeHealth::NotReady { since }) => now.duration_since(*since) > limits.not_ready_for,
        Some(NodeHealth::Ready | NodeHealth::Absent | NodeHealth::Unknown) | None => false,
    };
    lost || unready
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, at, restore};
    use crate::{LeasePower, MemberObservation, Restore, RestorePhase};

    fn refs(group: &NodeGroup) -> Vec<MemberName> {
        group.refs().collect()
    }

    const LIMITS: RepairLimits = RepairLimits::DEFAULT;

    #[test]
    fn a_server_that_does_not_become_a_node_in_time_is_created_again() {
        let (sample, mut seen) = running();
        let worker = refs(&sample.groups[1])[1].clone();
        let asked_at = Some(at(0));
        seen.machines
            .insert(worker.clone(), MemberObservation { asked_at, ..MemberObservation::default() });
        assert_eq!(servers_to_recreate(&sample.spec(), &seen, &LIMITS, at(900)), []);
        assert_eq!(
            servers_to_recreate(&sample.spec(), &seen, &LIMITS, at(901)),
            std::slice::from_ref(&worker)
        );
        // Without an answer from Kubernetes the state of the node is unknown, so the server must stay.
        seen.machines.get_mut(&worker).unwrap().node = NodeHealth::Unknown;
        assert_eq!(servers_to_recreate(&sample.spec(), &seen, &LIMITS, at(901)), []);
    }

    #[test]
    fn a_server_that_does_not_start_from_a_backup_in_time_is_created_again_without_an_api() {
        let late = |name: &str, phase: Option<RestorePhase>, bootstrap: Bootstrap| {
            let (mut sample, mut seen) = running();
            sample.cluster.restore = phase.map(|phase| Restore { phase, ..restore() });
            let machine: MemberName = name.parse().unwrap();
            let asked_at = Some(at(0));
            let node = NodeHealth::Unknown;
            let said =
                MemberObservation { bootstrap, node, asked_at, ..MemberObservation::default() };
            seen.machines.insert(machine, said);
            let late = |now| servers_to_recreate(&sample.spec(), &seen, &LIMITS, at(now)).len();
            // The member may fetch and restore the backup for half an hour.
            assert_eq!(late(900 + 1800), 0);
            late(901 + 1800)
        };
        let (master, worker) = ("default-master-1", "default-worker-1");
        let starting = Some(RestorePhase::Starting);
        let at_step = |step: &str| Bootstrap::At(step.to_owned());
        let failed = |why: &str| Bootstrap::Failed(why.to_owned());
        for (count, bootstrap) in [
            (1, Bootstrap::Silent),
            (1, at_step("configured")),
            (1, failed("control-plane: exit-code, status 22")),
            (0, at_step("control-plane")),
            (0, at_step("mark")),
            (0, failed("mark: exit-code, status 1")),
            (0, Bootstrap::Done),
        ] {
            assert_eq!(late(master, starting, bootstrap.clone()), count, "{bootstrap:?}");
            assert_eq!(late(worker, starting, bootstrap.clone()), 0, "{bootstrap:?}");
            assert_eq!(late(master, None, bootstrap), 0);
        }
    }

    #[test]
    fn no_server_is_created_again_in_a_cluster_that_is_deleted_off_or_starting() {
        let (mut sample, mut seen) = running();
        let late = MemberObservation { asked_at: Some(at(0)), ..MemberObservation::default() };
        seen.machines.insert(refs(&sample.groups[1])[1].clone(), late);
        let waking = Some(LeasePower::Waking { since: at(0) });
        let rows = [
            (DesiredState::Exist, None, 1),
            (DesiredState::Gone, None, 0),
            (DesiredState::Exist, Some(LeasePower::Off), 0),
            (DesiredState::Exist, waking, 0),
        ];
        for (desire, rest, count) in rows {
            (sample.cluster.desire, sample.cluster.rest) = (desire, rest);
            let late = servers_to_recreate(&sample.spec(), &seen, &LIMITS, at(901));
            assert_eq!(late.len(), count, "{desire:?} {rest:?}");
        }
    }

    fn running() -> (Sample, ClusterObservation) {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        (sample, seen)
    }

    fn fail(seen: &mut ClusterObservation, machine: &MemberName) {
        let said = seen.machines.get_mut(machine).unwrap();
        said.node = NodeHealth::NotReady { since: at(0) };
    }

    #[track_caller]
    fn check(sample: &Sample, seen: &ClusterObservation, now: Timestamp, want: &[&str]) {
        let got = members_to_replace(&sample.spec(), seen, &LIMITS, now);
        let got: Vec<String> = got.iter().map(ToString::to_string).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_node_that_is_unready_for_too_long_is_replaced() {
        let (sample, mut seen) = running();
        fail(&mut seen, &refs(&sample.groups[1])[0]);
        check(&sample, &seen, at(300), &[]);
        check(&sample, &seen, at(301), &["default-worker-0"]);
    }

    #[test]
    fn a_machine_whose_server_is_gone_is_replaced_at_once() {
        let (sample, mut seen) = running();
        seen.objects.remove(&Key::Server(refs(&sample.groups[0])[1].clone()));
        check(&sample, &seen, at(1), &["default-master-1"]);
    }

    #[test]
    fn two_of_three_control_plane_members_are_not_replaced() {
        let (sample, mut seen) = running();
        for machine in &refs(&sample.groups[0])[..2] {
            fail(&mut seen, machine);
        }
        check(&sample, &seen, at(1000), &[]);
    }

    #[test]
    fn a_control_plane_member_is_replaced_only_while_all_others_are_ready_members_of_etcd() {
        let (sample, mut seen) = running();
        let masters = refs(&sample.groups[0]);
        seen.objects.remove(&Key::Server(masters[0].clone()));
        let unready = NodeHealth::NotReady { since: at(0) };
        let rows: [(NodeHealth, bool, &[&str]); 3] = [
            (NodeHealth::Ready, true, &["default-master-0"]),
            (NodeHealth::Ready, false, &[]),
            (unready, true, &[]),
        ];
        for (node, is_etcd_member, want) in rows {
            let said = seen.machines.get_mut(&masters[1]).unwrap();
            (said.node, said.is_etcd_member) = (node, is_etcd_member);
            check(&sample, &seen, at(1), want);
        }
    }

    #[test]
    fn three_of_five_control_plane_members_are_not_replaced() {
        let mut sample = Sample::highly_available();
        sample.groups[0].machines = (0..5).collect();
        let mut seen = sample.complete();
        for (number, machine) in refs(&sample.groups[0])[..3].iter().enumerate() {
            fail(&mut seen, machine);
            let want: &[&str] = if number < 2 { &["default-master-0"] } else { &[] };
            check(&sample, &seen, at(1000), want);
        }
    }

    #[test]
    fn a_drained_member_is_not_replaced_nor_another_one_of_the_control_plane() {
        let (sample, mut seen) = running();
        let masters = refs(&sample.groups[0]);
        let worker = refs(&sample.groups[1])[0].clone();
        fail(&mut seen, &masters[0]);
        fail(&mut seen, &worker);
        check(&sample, &seen, at(1000), &["default-master-0", "default-worker-0"]);
        seen.drained = [masters[1].clone(), worker].into();
        check(&sample, &seen, at(1000), &[]);
        seen.drained = [masters[0].clone()].into();
        check(&sample, &seen, at(1000), &["default-worker-0"]);
    }

    #[test]
    fn workers_are_replaced_one_after_another() {
        let (sample, mut seen) = running();
        for machine in refs(&sample.groups[1]) {
            fail(&mut seen, &machine);
        }
        check(&sample, &seen, at(1000), &["default-worker-0"]);
    }

    #[test]
    fn a_cluster_that_was_never_complete_or_is_being_deleted_is_not_repaired() {
        let (mut sample, mut seen) = running();
        fail(&mut seen, &refs(&sample.groups[1])[0]);
        sample.cluster.completed_at = None;
        check(&sample, &seen, at(1000), &[]);
        sample.cluster.completed_at = Some(at(0));
        sample.cluster.desire = DesiredState::Gone;
        check(&sample, &seen, at(1000), &[]);
    }
}
