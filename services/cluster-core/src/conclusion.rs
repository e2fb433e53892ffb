//! Applies an observation to the record of a cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::cluster_lease::rest_after;
use crate::failure::setbacks;
use crate::reboot::{reboot_after, undrained_after};
use crate::{
    Bootstrap, Cluster, ClusterObservation, ClusterSpec, ConditionStatus, DesiredState, Key,
    MemberName, MemberObservation, NodeGroup, NodeHealth, api_address, conditions, desired_objects,
    machine_addresses,
};

impl Cluster {
    /// Returns the cluster with the conclusions of an observation.
    ///
    /// Sets `completed_at` when every condition is true for the first time since the last request, and no roll is in progress.
    pub fn with_observation(
        &self,
        groups: &[NodeGroup],
        seen: &ClusterObservation,
        now: Timestamp,
    ) -> Cluster {
        let spec = ClusterSpec { cluster: self, groups };
        let conditions = conditions(&spec, seen, now);
        let all_is_well = conditions.iter().all(|it| it.status == ConditionStatus::True);
        let is_complete = self.desire == DesiredState::Exist
            && all_is_well
            && self.roll.is_none()
            && self.restore.is_none()
            && self.completed_at.is_none_or(|done| done < self.asked_at);
        let mut concluded = self.clone();
        concluded.conditions = conditions;
        if seen.at.is_none() {
            return concluded;
        }
        concluded.api_address = api_address(&spec, seen).or(concluded.api_address);
        concluded.machine_addresses = machine_addresses(&spec, seen);
        concluded.nodes = nodes(&spec, seen);
        concluded.unready =
            concluded.nodes.iter().filter(|it| !is_ready(it, seen)).cloned().collect();
        concluded.setbacks = setbacks(self, &desired_objects(&spec), seen, now);
        concluded.authorities = self.authorities.next(&spec, seen);
        concluded.reboot = reboot_after(&spec, seen, now);
        concluded.undrained = undrained_after(&spec, seen, now);
        let members: BTreeSet<MemberName> = groups.iter().flat_map(NodeGroup::refs).collect();
        concluded.certificates.retain(|machine, _| members.contains(machine));
        concluded.rest = rest_after(self, all_is_well, now);
        if is_complete {
            concluded.completed_at = Some(now);
        }
        concluded
    }
}

fn is_ready(machine: &MemberName, seen: &ClusterObservation) -> bool {
    seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
}

/// Returns the members that have become Kubernetes nodes, and deleted members that Kubernetes or etcd still lists.
fn nodes(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> BTreeSet<MemberName> {
    let is_wanted = |machine: &MemberName| {
        spec.groups
            .iter()
            .any(|group| group.name == machine.group && group.machines.contains(&machine.number))
    };
    let stays = |machine: &MemberName, said: &MemberObservation| {
        let is_there = seen.objects.contains_key(&Key::Server(machine.clone()));
        let is_known = said.node != NodeHealth::Absent || said.is_etcd_member;
        said.bootstrap == Bootstrap::Done && (is_wanted(machine) || is_there || is_known)
    };
    let all = seen.machines.iter().filter(|(machine, said)| stays(machine, said));
    all.map(|(machine, _)| machine.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, at};

    #[test]
    fn a_cluster_is_completed_once_after_each_request() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        sample.cluster.completed_at = None;
        let at_once = |cluster: &Cluster, now| {
            cluster.with_observation(&sample.groups, &seen, at(now)).completed_at
        };
        assert_eq!(at_once(&sample.cluster, 50), Some(at(50)));
        let done = Cluster { completed_at: Some(at(50)), ..sample.cluster.clone() };
        assert_eq!(at_once(&done, 60), Some(at(50)));
        let at_the_request = Cluster { asked_at: at(50), ..done.clone() };
        assert_eq!(at_once(&at_the_request, 60), Some(at(50)));
        let asked_again = Cluster { asked_at: at(55), ..done };
        assert_eq!(at_once(&asked_again, 60), Some(at(60)));
        let leaving = Cluster { desire: DesiredState::Gone, ..sample.cluster.clone() };
        assert_eq!(at_once(&leaving, 50), None);
        let mut less = seen.clone();
        less.objects.remove(&Key::Network);
        let missing = sample.cluster.with_observation(&sample.groups, &less, at(50));
        assert_eq!(missing.completed_at, None);
    }

    #[test]
    fn nothing_is_concluded_before_the_first_observation() {
        let sample = Sample::highly_available();
        let before = ClusterObservation::default();
        let concluded = sample.cluster.with_observation(&sample.groups, &before, at(50));
        assert!(!concluded.conditions.is_empty());
        let conditions = sample.cluster.conditions.clone();
        assert_eq!(Cluster { conditions, ..concluded }, sample.cluster);
    }

    #[test]
    fn a_member_is_a_node_until_nothing_lists_it_any_more() {
        let mut sample = Sample::highly_available();
        let mut seen = sample.complete();
        let last: MemberName = "default-worker-1".parse().unwrap();
        let all = sample.cluster.with_observation(&sample.groups, &seen, at(50));
        assert_eq!((all.nodes.len(), all.unready.len()), (5, 0));
        seen.machines.get_mut(&last).unwrap().node = NodeHealth::Absent;
        let silent = sample.cluster.with_observation(&sample.groups, &seen, at(50));
        assert_eq!((silent.nodes.len(), silent.unready), (5, BTreeSet::from([last.clone()])));

        // The member is removed from its group: first its server is left, then its node, then its membership in etcd.
        sample.groups[1].machines.remove(&1);
        let is_node = |seen: &ClusterObservation| {
            let concluded = sample.cluster.with_observation(&sample.groups, seen, at(50));
            concluded.nodes.contains(&last)
        };
        assert!(is_node(&seen));
        seen.objects.remove(&Key::Server(last.clone()));
        assert!(!is_node(&seen));
        seen.machines.get_mut(&last).unwrap().node = NodeHealth::Ready;
        assert!(is_node(&seen));
        let said = seen.machines.get_mut(&last).unwrap();
        (said.node, said.is_etcd_member) = (NodeHealth::Absent, true);
        assert!(is_node(&seen));
        seen.machines.get_mut(&last).unwrap().bootstrap = Bootstrap::Silent;
        assert!(!is_node(&seen));
    }
}
