//! Which machines are to be replaced.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Backoff, Bootstrap, ClusterSpec, Desire, FoundState, GroupRole, Key, MachineRef, NodeGroup,
    NodeHealth, Seen,
};

/// How long a node may be unready before its machine is replaced, and how many are replaced at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairLimits {
    /// How long a node may be not ready.
    pub not_ready_for: SignedDuration,
    /// How many workers may be away at once.
    pub workers_at_once: usize,
    /// How long a machine may take to become a node.
    pub become_node_within: SignedDuration,
    /// How long is waited before that is asked for again at which the cloud failed.
    pub backoff: Backoff,
    /// How long a request that nobody answered may still be carried out.
    pub lands_within: SignedDuration,
}

impl RepairLimits {
    /// Five minutes, one at once, a quarter of an hour; requests may land for a minute.
    pub const DEFAULT: RepairLimits = RepairLimits {
        not_ready_for: SignedDuration::from_mins(5),
        workers_at_once: 1,
        become_node_within: SignedDuration::from_mins(15),
        backoff: Backoff::DEFAULT,
        lands_within: SignedDuration::from_mins(1),
    };
}

/// The machines whose servers are to be made again, as the same machines: they never became nodes, and had the time.
pub fn late(
    spec: &ClusterSpec<'_>,
    seen: &Seen,
    limits: &RepairLimits,
    now: Timestamp,
) -> Vec<MachineRef> {
    if spec.cluster.desire == Desire::Gone || spec.cluster.rest.is_some() {
        return Vec::new();
    }
    let all = spec.groups.iter().flat_map(NodeGroup::refs);
    let is_late = |machine: &MachineRef| {
        let server = seen.objects.get(&Key::Server(machine.clone()));
        let is_up = server.is_some_and(|found| found.state == FoundState::Ready);
        let said = seen.machines.get(machine);
        let never = said.is_some_and(|said| {
            said.bootstrap != Bootstrap::Done && said.node == NodeHealth::Absent
        });
        let asked = said.and_then(|said| said.asked_at);
        is_up
            && never
            && asked.is_some_and(|asked| now.duration_since(asked) > limits.become_node_within)
    };
    all.filter(is_late).collect()
}

/// The machines to be replaced now.
///
/// Of the control plane at most one at a time, and only while those that stay ready are a quorum without it: a
/// replacement must be able to join; none while a drain takes one of them out. What a drain takes out comes back, and is not replaced.
/// A cluster that was never complete is not repaired, for nothing in it is relied on.
pub fn replaceable(
    spec: &ClusterSpec<'_>,
    seen: &Seen,
    limits: &RepairLimits,
    now: Timestamp,
) -> Vec<MachineRef> {
    let cluster = spec.cluster;
    let repairs = cluster.blueprint.labels.settings().repair && cluster.desire == Desire::Exist;
    let is_watched = cluster.completed_at.is_some() && cluster.rest.is_none();
    if !repairs || !is_watched || seen.at.is_none() {
        return Vec::new();
    }
    let broken = |machine: &MachineRef| is_broken(machine, seen, limits, now);
    let mut replaced = Vec::new();
    for group in spec.groups {
        let machines: Vec<MachineRef> = group.refs().collect();
        let (bad, well): (Vec<_>, Vec<_>) = machines.into_iter().partition(broken);
        let at_once = match group.role {
            GroupRole::Master => {
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

/// Whether the ready ones of `well` are a quorum of all etcd members, and none of them is still joining.
fn keeps_quorum(well: &[MachineRef], seen: &Seen) -> bool {
    let members = seen.machines.values().filter(|said| said.is_etcd_member).count();
    let ready = well.iter().filter(|machine| {
        is_ready(machine, seen)
            && seen.machines.get(*machine).is_some_and(|said| said.is_etcd_member)
    });
    let ready = ready.count();
    ready == well.len() && ready > members / 2
}

fn is_ready(machine: &MachineRef, seen: &Seen) -> bool {
    seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
}

/// Whether a machine will not come back by itself: its server is gone or failed, or it was a node and has not been ready
/// for too long.
fn is_broken(machine: &MachineRef, seen: &Seen, limits: &RepairLimits, now: Timestamp) -> bool {
    let said = seen.machines.get(machine);
    let was_node = said.is_some_and(|said| said.bootstrap == Bootstrap::Done);
    if !was_node || seen.drained.contains(machine) {
        return false;
    }
    let server = seen.objects.get(&Key::Server(machine.clone())).map(|found| &found.state);
    let lost = matches!(server, None | Some(FoundState::Failed(_) | FoundState::Leaving));
    let unready = match said.map(|said| &said.node) {
        Some(NodeHealth::NotReady { since }) => now.duration_since(*since) > limits.not_ready_for,
        Some(NodeHealth::Ready | NodeHealth::Absent | NodeHealth::Unknown) | None => false,
    };
    lost || unready
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MachineSeen;
    use crate::sample::{Sample, at};

    fn refs(group: &NodeGroup) -> Vec<MachineRef> {
        group.refs().collect()
    }

    const LIMITS: RepairLimits = RepairLimits::DEFAULT;

    #[test]
    fn a_server_that_never_became_a_node_is_made_again_in_time() {
        let (sample, mut seen) = running();
        let worker = refs(&sample.groups[1])[1].clone();
        let asked_at = Some(at(0));
        seen.machines.insert(worker.clone(), MachineSeen { asked_at, ..MachineSeen::default() });
        assert_eq!(late(&sample.spec(), &seen, &LIMITS, at(900)), []);
        assert_eq!(late(&sample.spec(), &seen, &LIMITS, at(901)), std::slice::from_ref(&worker));
        // While Kubernetes is silent, nobody knows.
        seen.machines.get_mut(&worker).unwrap().node = NodeHealth::Unknown;
        assert_eq!(late(&sample.spec(), &seen, &LIMITS, at(901)), []);
    }

    fn running() -> (Sample, Seen) {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        (sample, seen)
    }

    fn fail(seen: &mut Seen, machine: &MachineRef) {
        let said = seen.machines.get_mut(machine).unwrap();
        said.node = NodeHealth::NotReady { since: at(0) };
    }

    #[track_caller]
    fn check(sample: &Sample, seen: &Seen, now: Timestamp, want: &[&str]) {
        let got = replaceable(&sample.spec(), seen, &LIMITS, now);
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
    fn two_control_plane_machines_of_three_are_not_replaced() {
        let (sample, mut seen) = running();
        for machine in &refs(&sample.groups[0])[..2] {
            fail(&mut seen, machine);
        }
        check(&sample, &seen, at(1000), &[]);
    }

    #[test]
    fn what_a_drain_takes_out_is_not_replaced_nor_another_of_the_control_plane_meanwhile() {
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
    fn nothing_is_repaired_that_never_was_or_is_to_go() {
        let (mut sample, mut seen) = running();
        fail(&mut seen, &refs(&sample.groups[1])[0]);
        sample.cluster.completed_at = None;
        check(&sample, &seen, at(1000), &[]);
        sample.cluster.completed_at = Some(at(0));
        sample.cluster.desire = Desire::Gone;
        check(&sample, &seen, at(1000), &[]);
    }
}
