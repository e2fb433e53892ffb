//! Node groups, and the machines in them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::request::MOST_MACHINES;
use crate::{
    Cluster, ClusterUuid, FlavorSize, Labels, LabelsCompared, MachineRef, Name, NodeGroupUuid,
};

/// Machines of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroup {
    /// Its id.
    pub id: NodeGroupUuid,
    /// Counts its changes.
    pub version: i64,
    /// Whose it is.
    pub cluster: ClusterUuid,
    /// Its name, of which there is one in a cluster.
    pub name: Name,
    /// What its machines do.
    pub role: GroupRole,
    /// Whether it came with the cluster.
    pub is_default: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Option<Timestamp>,
    /// The flavor of its machines.
    pub flavor: Option<String>,
    /// What that flavor gave a machine when machines of the group were last asked for, where the cloud told it.
    #[serde(default)]
    pub size: Option<FlavorSize>,
    /// Their image.
    pub image: String,
    /// The size of a volume for images and containers, in GiB.
    pub docker_volume_size: Option<u32>,
    /// The fewest machines it may have.
    pub min_node_count: u32,
    /// The most, where there is a limit.
    pub max_node_count: Option<u32>,
    /// The numbers of its machines. A number is never given twice, so that no machine is taken for another.
    pub machines: BTreeSet<u32>,
    /// The next number.
    pub next_machine: u32,
    /// Its own settings.
    pub labels: Labels,
    /// How they differ from the cluster's.
    pub labels_compared: LabelsCompared,
    /// Labels of its nodes in Kubernetes.
    pub node_labels: BTreeMap<String, String>,
    /// Taints of its nodes in Kubernetes.
    pub node_taints: Vec<NodeTaint>,
}

/// What machines of a group do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupRole {
    /// They are the control plane: `master`.
    Master,
    /// They do the work: `worker`, or a word of the user's own.
    Worker(String),
}

impl GroupRole {
    /// Magnum's word.
    pub fn as_str(&self) -> &str {
        match self {
            GroupRole::Master => "master",
            GroupRole::Worker(word) => word,
        }
    }
}

/// A taint of nodes: `key=value:NoSchedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTaint {
    /// Its key.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not bear it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintEffect {
    /// They are not put there.
    NoSchedule,
    /// They are put elsewhere if possible.
    PreferNoSchedule,
    /// They are moved away.
    NoExecute,
}

impl NodeGroup {
    /// A group that was just asked for, with so many machines of what its cluster has for their role, and as many as anybody likes from
    /// then on.
    pub fn new(
        id: NodeGroupUuid,
        cluster: &Cluster,
        (name, role): (Name, GroupRole),
        machines: u32,
        now: Timestamp,
    ) -> Self {
        // More than a group may have is refused by `check_group`, and not counted before.
        let machines = machines.min(MOST_MACHINES + 1);
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
        }
    }

    /// How many machines it is to have.
    pub fn node_count(&self) -> u32 {
        self.machines.len() as u32
    }

    /// Its machines.
    pub fn refs(&self) -> impl Iterator<Item = MachineRef> + '_ {
        self.machines.iter().map(|number| MachineRef { group: self.name.clone(), number: *number })
    }

    /// Gives it a further machine, with a number of its own.
    pub fn add_machine(&mut self) -> MachineRef {
        let number = self.next_machine;
        self.next_machine += 1;
        self.machines.insert(number);
        MachineRef { group: self.name.clone(), number }
    }

    /// Puts a new machine in the place of `number`; false where it has no such machine.
    pub fn replace_machine(&mut self, number: u32) -> bool {
        let known = self.machines.remove(&number);
        if known {
            self.add_machine();
        }
        known
    }
}
