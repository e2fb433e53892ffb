//! Applies an observation to the record of a cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::cluster_lease::rest_after;
use crate::failure::setbacks;
use crate::{
    Bootstrap, Cluster, ClusterObservation, ClusterSpec, ConditionStatus, DesiredState, Key,
    MemberName, MemberObservation, NodeGroup, NodeHealth, api_address, conditions, desired_objects,
    machine_addresses,
};

impl Cluster {
    /// Returns the cluster with the conclusions of an observation.
    ///
    /// Sets `completed_at` when every condition is true for the first time since the last request.
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
