//! The record of a roll: the members of a cluster are replaced by members with other parameters, one after the other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    ClusterParameters, FlavorSize, KubernetesVersion, Labels, LabelsCompared, NodeGroupUuid,
    TemplateUuid,
};

/// A roll in progress: the control plane first, then one node group after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roll {
    pub began_at: Timestamp,
    /// The version of Kubernetes that the members get.
    pub kubernetes: KubernetesVersion,
    /// How many workers of a group are replaced at once, each by a new member that is ready before the old one is removed.
    pub at_once: u32,
    /// How many workers of a group may be missing: so many old members are removed before their replacements are ready.
    #[serde(default)]
    pub max_unavailable: u32,
    /// Whether no further member is replaced until the owner resumes the roll.
    #[serde(default)]
    pub is_paused: bool,
    /// The parameters of the groups that have not begun.
    pub waiting: BTreeMap<NodeGroupUuid, GroupParameters>,
    /// The state that a rollback restores; `None` once the control plane is done, or when it is not replaced.
    #[serde(default)]
    pub origin: Option<Box<RollOrigin>>,
    /// The reason for which the roll waits, for people.
    #[serde(default)]
    pub waits_for: Option<String>,
}

/// The parameters of the members of a group that a roll changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupParameters {
    /// An id or a name.
    pub flavor: Option<String>,
    /// The size of the flavor; `None` when it is not known.
    pub size: Option<FlavorSize>,
    /// An id or a name.
    pub image: String,
    pub labels: Labels,
    pub labels_compared: LabelsCompared,
}

/// The state of a cluster before a roll of its control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollOrigin {
    pub template: TemplateUuid,
    pub blueprint: ClusterParameters,
    pub labels_compared: LabelsCompared,
    /// The parameters of the control plane.
    pub masters: GroupParameters,
}

impl Roll {
    /// Whether the control plane gets another version of Kubernetes than `now`.
    pub fn upgrades_control_plane(&self, now: KubernetesVersion) -> bool {
        self.origin.is_some() && self.kubernetes != now
    }
}
