//! Node groups, and the numbers of their members.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Cluster, ClusterUuid, FlavorSize, KubernetesVersion, Labels, LabelsCompared, MemberName, Name,
    NodeGroupUuid,
};

/// The largest number of members of a group: the pods' range has no room for more in one subnet.
pub(crate) const MAX_GROUP_SIZE: u32 = 1000;

/// Members of a cluster with the same role, flavor and image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroup {
    pub id: NodeGroupUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    pub cluster: ClusterUuid,
    /// Unique within the cluster.
    pub name: Name,
    pub role: GroupRole,
    /// Whether the group was created with the cluster; a default group is deleted with the cluster only.
    pub is_default: bool,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    /// The flavor of the servers: an id or a name.
    pub flavor: Option<String>,
    /// The size of the flavor when the number of members was last requested; `None` when the cloud did not tell.
    #[serde(default)]
    pub size: Option<FlavorSize>,
    /// The image of the servers: an id or a name.
    pub image: String,
    /// The size of a volume for images and containers, in GiB; `None` or 0: no such volume.
    pub docker_volume_size: Option<u32>,
    pub min_node_count: u32,
    /// `None`: no limit besides the one of every group.
    pub max_node_count: Option<u32>,
    /// The numbers of the members. A number is never used twice, so that a new member is never mistaken for an old one.
    pub machines: BTreeSet<u32>,
    /// The number of the next member.
    pub next_machine: u32,
    /// The labels of the group: those of the cluster, the group's own, or both merged, as the request said.
    pub labels: Labels,
    /// How the labels differ from those of the cluster.
    pub labels_compared: LabelsCompared,
    pub node_labels: BTreeMap<String, String>,
    pub node_taints: Vec<NodeTaint>,
    /// Whether the group was created with an image of its own, which stays when the cluster gets another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_image: bool,
    /// Whether the group was created with a flavor of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_flavor: bool,
    /// The version of Kubernetes of workers that are older than the control plane; `None`: that of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesVersion>,
    /// The members that are older than the group's parameters, and will be replaced.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub outdated: BTreeSet<u32>,
    /// Outdated members that stay until their replacements are ready, each with its replacement.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replacing: BTreeMap<u32, u32>,
    /// The labels that requests removed from the group: they are removed from its nodes too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed_labels: BTreeSet<String>,
    /// The taints that requests removed from the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_taints: Vec<NodeTaint>,
}

/// The role of the members of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupRole {
    /// Control plane; `master` in Magnum's API.
    Master,
    /// Workers: `worker`, or a word that the user chose.
    Worker(String),
}

impl Default for GroupRole {
    fn default() -> Self {
        GroupRole::Worker("worker".to_owned())
    }
}

impl GroupRole {
    /// Returns Magnum's name of the role.
    pub fn as_str(&self) -> &str {
        match self {
            GroupRole::Master => "master",
            GroupRole::Worker(word) => word,
        }
    }
}

/// A taint of Kubernetes nodes, such as `key=value:NoSchedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTaint {
    pub key: String,
    /// May be empty.
    pub value: String,
    pub effect: TaintEffect,
}

words::words! {
    /// The effect of a taint on pods that do not tolerate it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum TaintEffect {
        /// The scheduler does not place them on the node.
        NoSchedule = "NoSchedule",
        /// The scheduler places them on other nodes if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// The kubelet evicts them from the node.
        NoExecute = "NoExecute",
    }
}

impl NodeTaint {
    /// Whether a node can have only one of the two taints.
    pub fn is_in_place_of(&self, other: &NodeTaint) -> bool {
        (&self.key, self.effect) == (&other.key, other.effect)
    }
}

impl NodeGroup {
    /// Makes a new group with this number of members. Flavor, image and labels come from the cluster; the size has no upper limit of its
    /// own.
    pub fn new(
        id: NodeGroupUuid,
        cluster: &Cluster,
        (name, role): (Name, GroupRole),
        machines: u32,
        now: Timestamp,
    ) -> Self {
        // `check_group` refuses a larger number with a message; the bound keeps a huge number from filling memory before that.
        let machines = machines.min(MAX_GROUP_SIZE + 1);
        let first = cluster.first_machine;
        let next_machine = first.saturating_add(machines);
        let blueprint = &cluster.blueprint;
        let flavor = match role {
            GroupRole::Master => &blueprint.master_flavor,
            GroupRole::Worker(_) => &blueprint.flavor,
        };
        NodeGroup {
            id,
            version: 1,
            cluster: cluster.id,
            name,
            role,
            is_default: false,
            created_at: now,
            updated_at: None,
            flavor: flavor.clone(),
            size: None,
            image: blueprint.image.clone(),
            docker_volume_size: blueprint.docker_volume_size,
            min_node_count: 0,
            max_node_count: None,
            machines: (first..next_machine).collect(),
            next_machine,
            labels: blueprint.labels.clone(),
            labels_compared: LabelsCompared::default(),
            node_labels: BTreeMap::new(),
            node_taints: Vec::new(),
            has_own_image: false,
            has_own_flavor: false,
            kubernetes: None,
            outdated: BTreeSet::new(),
            replacing: BTreeMap::new(),
            removed_labels: BTreeSet::new(),
            removed_taints: Vec::new(),
        }
    }

    /// Makes the control plane that a cluster is created with.
    pub fn default_masters(id: NodeGroupUuid, cluster: &Cluster, machines: u32) -> Self {
        let named = (default_name("master"), GroupRole::Master);
        let group = NodeGroup::new(id, cluster, named, machines, cluster.created_at);
        NodeGroup { is_default: true, min_node_count: 1, ..group }
    }

    /// Makes the workers that a cluster is created with. The labels of the cluster set the limits of their number.
    pub fn default_workers(id: NodeGroupUuid, cluster: &Cluster, machines: u32) -> Self {
        let (least, most) = cluster.blueprint.labels.settings().node_count_bounds;
        let named = (default_name("worker"), GroupRole::default());
        let group = NodeGroup::new(id, cluster, named, machines, cluster.created_at);
        NodeGroup {
            is_default: true,
            min_node_count: least.unwrap_or(0),
            max_node_count: most,
            ..group
        }
    }

    /// Whether these are the workers that the cluster was created with.
    pub fn is_default_workers(&self) -> bool {
        self.is_default && self.role != GroupRole::Master
    }

    /// Returns the number of members that the group should have. A member and its replacement count as one.
    pub fn node_count(&self) -> u32 {
        self.machines.len().saturating_sub(self.replacing.len()) as u32
    }

    /// Returns all members of the group.
    pub fn refs(&self) -> impl Iterator<Item = MemberName> + '_ {
        self.machines.iter().map(|number| MemberName { group: self.name.clone(), number: *number })
    }

    /// Whether the group has members that it does not have in `before`, the groups of its cluster before a change.
    pub fn has_new_members(&self, before: &[NodeGroup]) -> bool {
        let was = before.iter().find(|was| was.id == self.id);
        was.is_none_or(|was| !self.machines.is_subset(&was.machines))
    }

    /// Adds a member with a new number.
    pub fn add_machine(&mut self) -> MemberName {
        let number = self.next_machine;
        self.next_machine += 1;
        self.machines.insert(number);
        MemberName { group: self.name.clone(), number }
    }

    /// Replaces member `number` by a new member with a new number, unless it has a replacement. Returns false when the group has no such
    /// member.
    pub fn replace_machine(&mut self, number: u32) -> bool {
        if !self.machines.remove(&number) {
            return false;
        }
        self.outdated.remove(&number);
        if self.replacing.remove(&number).is_some() {
            return true;
        }
        let new = self.add_machine().number;
        if let Some(replacement) = self.replacing.values_mut().find(|it| **it == number) {
            *replacement = new;
        }
        true
    }
}

fn default_name(role: &str) -> Name {
    format!("default-{role}")
        .parse()
        .expect("it begins with a letter, and has only letters and '-'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, labels};

    #[test]
    fn labels_set_the_limits_of_the_default_workers_only() {
        let mut cluster = Sample::highly_available().cluster;
        let id = NodeGroupUuid::nil();
        let shown = |cluster: &Cluster| {
            let masters = NodeGroup::default_masters(id, cluster, 3);
            let groups = [masters, NodeGroup::default_workers(id, cluster, 2)];
            groups.map(|group| {
                assert!(group.is_default && group.created_at == cluster.created_at);
                let limits = (group.min_node_count, group.max_node_count);
                (group.name.to_string(), group.role.as_str().to_owned(), group.node_count(), limits)
            })
        };
        let want = |name: &str, role: &str, count, limits| {
            (name.to_owned(), role.to_owned(), count, limits)
        };
        let masters = want("default-master", "master", 3, (1, None));
        let workers = |limits| want("default-worker", "worker", 2, limits);
        assert_eq!(shown(&cluster), [masters.clone(), workers((0, None))]);
        cluster.blueprint.labels = labels(&[("min_node_count", "2"), ("max_node_count", "7")]);
        assert_eq!(shown(&cluster), [masters, workers((2, Some(7)))]);
    }

    #[test]
    fn the_default_workers_are_neither_the_control_plane_nor_an_added_group() {
        let mut groups = Sample::highly_available().groups;
        groups.push(NodeGroup { is_default: false, ..groups[1].clone() });
        groups.push(NodeGroup { is_default: false, ..groups[0].clone() });
        let are = groups.iter().map(NodeGroup::is_default_workers);
        assert_eq!(Vec::from_iter(are), [false, true, false, false]);
    }

    #[test]
    fn a_group_has_new_members_when_it_is_new_grows_or_replaces_one() {
        let before = Sample::highly_available().groups;
        let mut after = before[1].clone();
        assert!(!after.has_new_members(&before));
        assert!(after.has_new_members(&before[..1]), "the group is new");
        after.machines.pop_last();
        assert!(!after.has_new_members(&before), "it only shrinks");
        assert!(after.replace_machine(0));
        assert!(after.has_new_members(&before), "a member is replaced");
    }
}
