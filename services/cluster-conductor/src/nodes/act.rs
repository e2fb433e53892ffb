//! Removes members from a cluster: eviction, etcd, and the Kubernetes node.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cluster_core::{
    ClusterObservation, Key, MemberName, MemberObservation, NodeGroup, NodeHealth, machine_name,
};
use kubernetes::KubernetesError;
use kubernetes::drain::drain;
use kubernetes::etcd::{self, Member, MemberId, Progress};

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
        let others = self.etcd_addresses(machine, seen);
        let mut failed = CloudWorkError::Silent;
        for other in self.other_masters(machine, seen) {
            match self.leave_by(&name, &others, &other).await {
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

    /// Removes the etcd member of this name, and members that never started and are of no other server, through the node `other`.
    async fn leave_by(
        &self,
        name: &str,
        others: &BTreeSet<IpAddr>,
        other: &str,
    ) -> Result<Progress<()>> {
        let client = &self.answers()?.client;
        let Progress::Done(members) = etcd::members(client, other).await? else {
            return Ok(Progress::Pending);
        };
        let leaving = leaving(&members, name, others);
        let Some(first) = leaving.first() else { return Ok(Progress::Done(())) };
        let removed = etcd::remove(client, other, *first).await?;
        Ok(if leaving.len() > 1 { Progress::Pending } else { removed })
    }

    /// Returns the addresses at which the etcd members of the other control-plane servers are reached.
    fn etcd_addresses(&self, machine: &MemberName, seen: &ClusterObservation) -> BTreeSet<IpAddr> {
        let is_other = |other: &MemberName| other != machine && self.is_master(other);
        let ports = seen.objects.iter().filter(|(key, _)| matches!(key, Key::Port(_)));
        let others = ports.filter(|(key, _)| key.member().is_some_and(is_other));
        others.filter_map(|(_, found)| found.address).collect()
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

/// Returns the etcd members that leave with the server `name`: its own, and those that never started and are at no address of `others`.
///
/// etcd lists a member without a name from its admission to its first start. If the server is lost in between, only the address tells which
/// server it was.
fn leaving(members: &[Member], name: &str, others: &BTreeSet<IpAddr>) -> Vec<MemberId> {
    let is_of_other = |member: &Member| {
        member.peer_urls.iter().any(|url| peer_address(url).is_none_or(|at| others.contains(&at)))
    };
    let leaves =
        |member: &&Member| member.name == name || (member.name.is_empty() && !is_of_other(member));
    members.iter().filter(leaves).map(|member| member.id).collect()
}

/// Returns the address in `https://ADDRESS:2380`.
fn peer_address(url: &str) -> Option<IpAddr> {
    let (host, _) = url.split_once("://")?.1.rsplit_once(':')?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, name: &str, url: &str) -> Member {
        let peer_urls = vec![url.to_owned()];
        Member { id: MemberId(id), name: name.to_owned(), peer_urls, is_learner: false }
    }

    #[test]
    fn a_member_that_never_started_leaves_unless_another_server_is_about_to_start_it() {
        let members = [
            member(1, "a", "https://10.0.0.1:2380"),
            member(2, "b", "https://10.0.0.2:2380"),
            member(3, "", "https://10.0.0.3:2380"),
            member(4, "", "https://10.0.0.4:2380"),
            member(5, "", "https://[fd00::5]:2380"),
            member(6, "", "https://unreadable"),
        ];
        let others = ["10.0.0.1", "10.0.0.3", "fd00::5"].map(|at| at.parse::<IpAddr>().unwrap());
        assert_eq!(leaving(&members, "b", &others.into()), [MemberId(2), MemberId(4)]);
        assert_eq!(leaving(&members[..2], "c", &others.into()), []);
    }
}
