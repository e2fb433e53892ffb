//! A cluster with its node groups.

use crate::{Cluster, GroupRole, KubernetesVersion, MemberName, NodeGroup};

/// A cluster with its node groups: everything that its owner asked for.
#[derive(Clone, Copy, Debug)]
pub struct ClusterSpec<'a> {
    pub cluster: &'a Cluster,
    pub groups: &'a [NodeGroup],
}

impl ClusterSpec<'_> {
    /// Returns the version of Kubernetes of new members of a group.
    pub fn version_of(&self, group: &NodeGroup) -> KubernetesVersion {
        let now = self.cluster.kubernetes;
        match group.role {
            GroupRole::Master if self.is_upgrading(group) => {
                self.cluster.roll.as_ref().map_or(now, |roll| roll.kubernetes)
            }
            GroupRole::Master => now,
            GroupRole::Worker(_) => group.kubernetes.unwrap_or(now),
        }
    }

    /// Whether the control plane may have members of two minor versions. kubeadm of the older one may not read the configuration that the
    /// newer members uploaded, and a kubelet of the newer one must not meet an older API server, so no worker can join.
    pub(crate) fn has_mixed_control_plane(&self) -> bool {
        let masters = self.groups.iter().find(|group| group.role == GroupRole::Master);
        let is_minor = self.cluster.roll.as_ref().is_some_and(|roll| {
            roll.upgrades_control_plane(self.cluster.kubernetes)
                && roll.kubernetes.minor != self.cluster.kubernetes.minor
        });
        // Before its first new member is a Kubernetes node, nothing has changed for workers.
        let is_new_node = |group: &NodeGroup, member: &MemberName| {
            !group.outdated.contains(&member.number) && self.cluster.nodes.contains(member)
        };
        let has_new = |group: &NodeGroup| group.refs().any(|it| is_new_node(group, &it));
        is_minor && masters.is_some_and(|group| self.is_upgrading(group) && has_new(group))
    }

    /// Whether a roll of the control plane has begun with its group.
    fn is_upgrading(&self, masters: &NodeGroup) -> bool {
        let roll = self.cluster.roll.as_ref();
        roll.is_some_and(|roll| roll.origin.is_some() && !roll.waiting.contains_key(&masters.id))
    }
}
