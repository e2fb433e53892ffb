//! Removes members from a cluster: eviction, etcd, and the Kubernetes node.

use cluster_core::{
    ClusterObservation, MemberName, MemberObservation, NodeGroup, NodeHealth, machine_name,
};
use kubernetes::KubernetesError;
use kubernetes::drain::drain;
use kubernetes::etcd::{self, Progress};

use super::{Answers, Nodes};
use crate::cloud::{CloudWorkError, Result};

/// A member, and its new state.
type NodeActionResult = Result<(MemberName, MemberObservation)>;

impl Nodes<'_> {
    fn answers(&self) -> Result<&Answers> {
        self.answers.as_ref().ok_or(CloudWorkError::Silent)
    }

    /// Evicts the pods of a member in a single pass, which may leave some for the next turn.
    ///
    /// Pods of a node that is not ready never report their end, so one eviction request for each is enough.
    pub(crate) async fn drain(
        &self,
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> NodeActionResult {
        let name = machine_name(self.spec.cluster, machine);
        let left = drain(&self.answers()?.client, &name).await?;
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        if let Some(held) = left.held.first() {
            return Err(CloudWorkError::EvictionBlocked {
                machine: machine.clone(),
                pod: held.pod.to_string(),
                why: held.reason.clone(),
                more: left.held.len() - 1,
            });
        }
        let is_drained = left.is_empty() || said.node != NodeHealth::Ready;
        Ok((machine.clone(), MemberObservation { is_drained, ..said }))
    }

    /// Removes a member from etcd through another member; when that fails, through the next one. Takes several turns.
    pub(crate) async fn leave_etcd(
        &self,
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> NodeActionResult {
        let name = machine_name(self.spec.cluster, machine);
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        let mut failed = CloudWorkError::Silent;
        for other in self.other_masters(machine, seen) {
            match self.leave_by(&name, &other).await {
                Ok(Progress::Pending) => return Ok((machine.clone(), said)),
                Ok(Progress::Done(())) => {
                    return Ok((
                        machine.clone(),
                        MemberObservation { is_etcd_member: false, ..said },
                    ));
                }
                Err(CloudWorkError::Kubernetes(error @ KubernetesError::Etcd { .. })) => {
                    tracing::warn!("cannot remove {name} from etcd through {other}: {error}");
                    failed = error.into();
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Err(failed)
    }

    /// Removes the etcd member of this name, through the node `other`.
    async fn leave_by(&self, name: &str, other: &str) -> Result<Progress<()>> {
        let client = &self.answers()?.client;
        let Progress::Done(members) = etcd::members(client, other).await? else {
            return Ok(Progress::Pending);
        };
        match members.iter().find(|member| member.name == name) {
            Some(member) => Ok(etcd::remove(client, other, member.id).await?),
            None => Ok(Progress::Done(())),
        }
    }

    /// Returns the nodes of the other control-plane members that are ready and stay.
    fn other_masters(&self, machine: &MemberName, seen: &ClusterObservation) -> Vec<String> {
        let masters = self.spec.groups.iter().filter(|group| self.is_control_plane(group));
        let is_ready = |other: &MemberName| {
            seen.machines.get(other).is_some_and(|said| said.node == NodeHealth::Ready)
        };
        let others = masters.flat_map(NodeGroup::refs);
        let others = others.filter(|other| other != machine && is_ready(other));
        others.map(|other| machine_name(self.spec.cluster, &other)).collect()
    }

    /// Deletes the Kubernetes node of a member.
    pub(crate) async fn forget(
        &self,
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> NodeActionResult {
        let name = machine_name(self.spec.cluster, machine);
        kubernetes::nodes::delete(&self.answers()?.client, &name).await?;
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        Ok((machine.clone(), MemberObservation { node: NodeHealth::Absent, ..said }))
    }
}
